//! One row of a batch, while a worker writes it.

use crate::{
    fault::FieldError,
    memory::{Chunk, Column, Field, Planes, Role, RowExtras, RowSize, SlotLayout, first_beyond, spread},
};
use burn::tensor::Element;
use std::{any::type_name, mem::discriminant};

/// The row of one sample in a batch that is being written. It is in the slot that is later copied to the device.
///
/// ```
/// use burn::data::dataset::InMemDataset;
/// use burn::{prelude::*, tensor::DType};
/// use burn_pinned::{BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut};
///
/// struct Sums;
/// impl Collate<[f32; 3]> for Sums {
///     type Batch = (Tensor<2>, Tensor<1>, Tensor<2>);
///     fn layout(&self) -> Vec<Field> {
///         vec![
///             Field::new("x", DType::F32, [3]),
///             Field::new("sum", DType::F32, []),
///             Field::new("double", DType::F32, [3]),
///         ]
///     }
///     fn write(&self, x: &[f32; 3], row: &mut RowMut<'_>) -> Result<(), BoxError> {
///         row.write("x", x)?; // all values of the row, copied
///         row.put("sum", x[0] + x[1] + x[2])?; // its only value
///         for (place, value) in row.slice_mut::<f32>("double")?.iter_mut().zip(x) {
///             *place = 2.0 * *value; // computed in place, not copied
///         }
///         Ok(())
///     }
///     fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
///         Ok((batch.take("x")?, batch.take("sum")?, batch.take("double")?))
///     }
/// }
///
/// let loader = PinnedDataLoaderBuilder::new(Sums).batch_size(1).build(InMemDataset::new(vec![[1.0f32, 2.0, 3.0]]))?;
/// let (_, sum, double) = loader.iter().next().unwrap()?;
/// assert_eq!(sum.into_data().try_to_vec::<f32>()?, [6.0]);
/// assert_eq!(double.into_data().try_to_vec::<f32>()?, [2.0, 4.0, 6.0]);
/// # Ok::<(), BoxError>(())
/// ```
///
/// The collate must write every field before it returns. Fields are looked up by a linear search through the names. So
/// if rows are tiny, write the fields in the layout's order.
#[derive(Debug)]
pub struct RowMut<'a> {
    pub(super) chunk: &'a mut Chunk,
    pub(super) row: usize,
    /// One bit per field.
    written: u64,
    /// The size of each padded field, written as the collate writes it.
    sizes: &'a mut [RowSize],
    /// For values that are not in the slot.
    pub(super) extras: &'a mut RowExtras,
}

impl<'a> RowMut<'a> {
    pub(crate) fn new(chunk: &'a mut Chunk, row: usize, sizes: &'a mut [RowSize], extras: &'a mut RowExtras) -> Self {
        Self { chunk, row, written: 0, sizes, extras }
    }

    #[inline]
    pub(super) fn find(&self, name: &str) -> Result<(usize, &Field), FieldError> {
        let layout = self.chunk.layout();
        let fields = &layout.fields;
        // Equal literals mostly have the same address, so comparing the addresses first avoids comparing the text.
        let named = |field: &Field| std::ptr::eq::<str>(&*field.name, name) || field.name == name;
        let at = fields.iter().position(named).ok_or_else(|| unknown(layout, name))?;
        match fields[at].role {
            Role::Mask | Role::Offsets | Role::Rows => {
                let problem = "is made by the loader: write the field before it alone, or give your own another name";
                Err(of_another_kind(name, problem))
            }
            Role::Plain | Role::Masked | Role::Jagged => Ok((at, &fields[at])),
        }
    }

    /// Like `find`, for a field of this type.
    #[inline]
    fn find_of<E: Element>(&self, name: &str) -> Result<(usize, &Field), FieldError> {
        let (at, field) = self.find(name)?;
        // Only the variants of the dtypes are compared: comparing their contents too would take a tenth of a small sample's time. The
        // layout refuses quantized fields, and `bool` values fit every one-byte boolean store.
        let same = discriminant(&field.dtype) == discriminant(&E::dtype());
        if same && (!E::dtype().is_bool() || field.dtype.size() == size_of::<E>()) {
            return Ok((at, field));
        }
        let (expected, given) = (field.dtype.name(), E::dtype().name());
        Err(FieldError::DType { name: field.name.to_string(), expected, given })
    }

    // Inlined, for the same reason as `rows::group`: the fewer instructions between two small copies, the
    // more they overlap.
    /// Copies `values` into a field: the whole row or, for a padded or jagged field, any number of whole steps up to
    /// its maximum.
    ///
    /// # Errors
    /// If the layout has no such field, if its dtype or size differs, or if it is an image field.
    #[inline]
    pub fn write<E: Element>(&mut self, name: &str, values: &[E]) -> Result<(), FieldError> {
        let (at, field) = self.find_of::<E>(name)?;
        if field.pad.is_some() {
            two_dimensions(field)?;
            let max = self.chunk.layout().row_values(at);
            let step = max / field.shape[0];
            if values.len() > max || !values.len().is_multiple_of(step) {
                let kind = if field.role == Role::Jagged { "jagged" } else { "padded" };
                return Err(FieldError::Padded { name: name.into(), kind, max, step, given: values.len() });
            }
            self.set_size(at, RowSize::new(1, values.len() / step));
        } else if values.len() != self.chunk.layout().row_values(at) {
            let expected = self.chunk.layout().row_values(at);
            no_image(self.chunk.layout(), at)?;
            return Err(FieldError::Length { name: name.into(), expected, given: values.len() });
        }
        let bytes: &[u8] = bytemuck::cast_slice(values);
        self.chunk.copy(at, self.row, bytes);
        self.written |= 1 << at; // layouts have at most 64 fields
        Ok(())
    }

    /// Copies `values` into a field whose rows vary in two dimensions ([`Field::padded_2d`]). They have the shape
    /// `[height, width]`, or are as many planes of that shape as the field has, one after the other.
    ///
    /// # Errors
    /// If the layout has no such field, if its dtype differs, if the row is larger than the field allows, or if the number of values does
    /// not match the size.
    pub fn write_2d<E: Element>(&mut self, name: &str, size: [usize; 2], values: &[E]) -> Result<(), FieldError> {
        let (at, field) = self.find_of::<E>(name)?;
        if !field.varies_in_2d || field.is_image() {
            let problem =
                "does not vary in two dimensions: write it by another method, or make it by `Field::padded_2d`";
            return Err(of_another_kind(name, problem));
        }
        let whole = field.planes();
        let [height, width] = size;
        let expected = height.checked_mul(width).and_then(|plane| plane.checked_mul(whole.planes));
        if height > whole.lines || width > whole.steps || expected != Some(values.len()) {
            let largest = [whole.planes, whole.lines, whole.steps];
            return Err(FieldError::Size { name: name.into(), largest, size, given: values.len() });
        }
        self.chunk.copy(at, self.row, bytemuck::cast_slice(values));
        self.note_size(at, whole, size);
        self.written |= 1 << at;
        Ok(())
    }

    /// Notes the height and width of a row, and spreads its adjacent values over the lines of the field.
    pub(super) fn note_size(&mut self, at: usize, whole: Planes, [height, width]: [usize; 2]) {
        let size = RowSize::new(height, width);
        spread(self.chunk.bytes_mut(at, self.row), whole, size);
        self.set_size(at, size);
    }

    /// Notes the size of a row of a padded field. The loader fills the fields that it adds after it from the size.
    #[inline]
    fn set_size(&mut self, at: usize, size: RowSize) {
        let added = self.chunk.layout().fields[at].companion_count();
        self.sizes[at..=at + added].fill(size);
        self.written |= ((2 << added) - 2) << at; // one bit for each of them
    }

    /// Writes one value into a field of one value per row.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    #[inline]
    pub fn put<E: Element>(&mut self, name: &str, value: E) -> Result<(), FieldError> {
        self.write(name, &[value])
    }

    /// Returns the memory of a field, to decode or compute straight into it. It contains values of an earlier batch, so
    /// overwrite all of it.
    ///
    /// # Errors
    /// If the layout has no such field, if it is padded, if its dtype differs, or if it is an image field.
    pub fn slice_mut<E: Element + bytemuck::Pod>(&mut self, name: &str) -> Result<&mut [E], FieldError> {
        let (at, field) = self.find_of::<E>(name)?;
        two_dimensions(field)?;
        if field.pad.is_some() {
            return Err(of_another_kind(name, "is padded or jagged: write it by `RowMut::write`"));
        }
        no_image(self.chunk.layout(), at)?;
        self.written |= 1 << at;
        Ok(bytemuck::cast_slice_mut(self.chunk.bytes_mut(at, self.row)))
    }

    /// Moves a value into the row's place in a [column](crate::Field::column).
    ///
    /// # Errors
    /// If the layout has no such column, or if its values have another type.
    pub fn put_column<T: Clone + Send + Sync + 'static>(&mut self, name: &str, value: T) -> Result<(), FieldError> {
        let layout = self.chunk.layout();
        let Some(at) = layout.columns.iter().position(|column| column.name == name) else {
            return Err(self.no_column(name));
        };
        let (bit, row) = (layout.fields.len() + at, self.row - self.chunk.rows().start);
        if !self.extras.columns.get_mut(at).is_some_and(|column| column.set(row, value)) {
            return Err(another_type::<T>(self.extras.columns.get(at).map(|column| &**column), name));
        }
        self.note_written(bit);
        Ok(())
    }

    #[cold]
    fn no_column(&self, name: &str) -> FieldError {
        // Distinguishes a tensor field of this name from an unknown name.
        match self.find(name) {
            Ok(_) => of_another_kind(name, "is no column: write it by another method, or make it by `Field::column`"),
            Err(unknown) => unknown,
        }
    }

    /// Notes that a field was written. Columns are numbered after the fields in the slot.
    pub(super) fn note_written(&mut self, field: usize) {
        self.written |= 1 << field;
    }

    /// Checks that every field was written, and that values fit the dtypes of their tensors.
    #[inline]
    pub(crate) fn complete(&mut self) -> Result<(), FieldError> {
        let layout = self.chunk.layout();
        if self.written != layout.all_written() {
            return Err(self.unwritten());
        }
        (0..layout.narrowed.len()).try_for_each(|nth| self.fits(nth))
    }

    /// Checks the values of a field that may have values that do not fit.
    fn fits(&mut self, nth: usize) -> Result<(), FieldError> {
        let (at, into) = self.chunk.layout().narrowed[nth];
        let field = &self.chunk.layout().fields[at];
        let (dtype, whole, size) = (field.dtype, field.planes(), self.sizes.get(at).filter(|_| field.pad.is_some()));
        let (lines, steps) = size.map_or((whole.lines, whole.steps), |size| (size.lines(), size.steps()));
        let bytes = &*self.chunk.bytes_mut(at, self.row);
        // The memory beyond the lines of a small row has values of an earlier batch.
        let starts =
            (0..whole.planes).flat_map(|plane| (0..lines).map(move |line| (plane * whole.lines + line) * whole.steps));
        let mut lines = starts.map(|start| &bytes[start * whole.step_bytes..][..steps * whole.step_bytes]);
        let Some((_, value)) = lines.find_map(|line| first_beyond(line, dtype, into)) else { return Ok(()) };
        if self.chunk.layout().fields[at].cast.is_none() {
            self.extras.beyond |= 1 << at;
            return Ok(());
        }
        let (name, row) = (self.chunk.layout().fields[at].name.to_string(), self.row);
        Err(FieldError::Range { name, value, row, into: into.name(), dtype: dtype.name() })
    }

    #[cold]
    fn unwritten(&self) -> FieldError {
        let SlotLayout { fields, columns, .. } = self.chunk.layout();
        let first = fields.iter().chain(columns).nth(self.written.trailing_ones() as usize);
        FieldError::Unwritten { name: first.map(|field| field.name.to_string()).unwrap_or_default() }
    }
}

const TAKES_IMAGES: &str = "takes images: write it by `RowMut::image`";

#[cold]
pub(super) fn of_another_kind(name: &str, problem: &'static str) -> FieldError {
    FieldError::Kind { name: name.into(), problem }
}

fn two_dimensions(field: &Field) -> Result<(), FieldError> {
    if !field.varies_in_2d {
        return Ok(());
    }
    let problem =
        if field.is_image() { TAKES_IMAGES } else { "varies in two dimensions: write it by `RowMut::write_2d`" };
    Err(of_another_kind(&field.name, problem))
}

#[cold]
fn no_image(layout: &SlotLayout, field: usize) -> Result<(), FieldError> {
    if layout.image_values(field).is_none() {
        return Ok(());
    }
    Err(of_another_kind(&layout.fields[field].name, TAKES_IMAGES))
}

#[cold]
fn unknown(layout: &SlotLayout, name: &str) -> FieldError {
    if layout.columns.iter().any(|column| column.name == name) {
        return of_another_kind(name, "is a column: write it by `RowMut::put_column`");
    }
    let known = layout.fields.iter().map(|field| format!("`{}`", field.name)).collect::<Vec<_>>().join(", ");
    FieldError::Unknown { name: name.into(), known }
}

#[cold]
pub(super) fn another_type<T>(column: Option<&dyn Column>, name: &str) -> FieldError {
    let expected = column.map_or("nothing", |column| column.of());
    FieldError::DType { name: name.into(), expected, given: type_name::<T>() }
}
