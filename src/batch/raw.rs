//! A batch on the device, before the collate makes the user's batch from it.

use super::row::{another_type, of_another_kind};
use crate::{
    device::{AnyTensor, DeviceTensor},
    fault::FieldError,
    memory::{Column, Field, IntegerFit, Role, RowSize, always_fits, first_beyond},
    vocabulary::BatchKey,
};
use burn::tensor::{DType, Device, Int, Shape, Tensor, kind::Basic};
use burn_augment::{KeyedRng, for_loader::Purpose};
use std::{any::type_name, borrow::Cow, mem, sync::Arc};

/// The tensors of one batch, one for each field of the layout, on the loader's device.
///
/// ```
/// use burn::prelude::*;
/// use burn_pinned::{BoxError, RawBatch};
///
/// fn finish(mut batch: RawBatch) -> Result<(Tensor<4>, Tensor<1, Int>), BoxError> {
///     let images = batch.take::<4, Int>("image")?; // u8, [N, C, H, W]
///     Ok((images.float() / 255.0, batch.take_int("label")?))
/// }
/// ```
#[derive(Debug)]
pub struct RawBatch {
    fields: Vec<RawField>,
    rows: usize,
    device: Device,
    seed: u64,
    key: BatchKey,
    pub(crate) indices: Option<Arc<[usize]>>,
    /// The sizes of padded fields, by row and then by field; empty without such fields.
    pub(crate) sizes: Vec<RowSize>,
    /// Which fields are known to fit the device's integer dtype.
    pub(crate) compared: IntegerFit,
    /// The columns of the layout.
    columns: Vec<RawColumn>,
}

/// A field whose values stay on the host.
#[derive(Debug)]
struct RawColumn {
    name: Cow<'static, str>,
    /// `None` once they were taken.
    values: Option<Box<dyn Column>>,
}

#[derive(Debug)]
struct RawField {
    name: Cow<'static, str>,
    /// Makes the `Tensor<D, K>`. `None` once it was taken.
    tensor: Option<DeviceTensor>,
    dtype: DType,
    shape: Shape,
    /// Whether its rows vary in height and width.
    varies_in_2d: bool,
    /// Whether its rows lie end to end.
    is_jagged: bool,
}

impl RawField {
    /// The type of the field's tensor, for the error when another type is asked for.
    fn what(&self) -> String {
        let (kind, shape) = (kind_name(self.dtype), &self.shape);
        format!("it is a Tensor<{}, {kind}> of {} {:?}", shape.num_dims(), self.dtype.name(), shape.as_slice())
    }
}

impl RawBatch {
    pub(crate) fn new(rows: usize, device: Device, seed: u64, key: BatchKey) -> Self {
        Self {
            fields: Vec::new(),
            rows,
            device,
            seed,
            key,
            indices: None,
            sizes: Vec::new(),
            compared: IntegerFit::default(),
            columns: Vec::new(),
        }
    }

    /// Sets the columns of a layout.
    pub(crate) fn set_columns(&mut self, names: &[Field], columns: impl IntoIterator<Item = Box<dyn Column>>) {
        let named = names.iter().zip(columns);
        self.columns =
            named.map(|(field, values)| RawColumn { name: field.name.clone(), values: Some(values) }).collect();
    }

    /// Takes the columns, in the layout's order.
    pub(crate) fn take_columns(&mut self) -> Vec<Box<dyn Column>> {
        mem::take(&mut self.columns).into_iter().filter_map(|column| column.values).collect()
    }

    /// The tensors of all fields in the layout's order, and the sizes of padded fields, by row and then by field.
    pub(crate) fn into_tensors(self) -> (impl Iterator<Item = AnyTensor>, Vec<RowSize>) {
        (self.fields.into_iter().filter_map(|field| field.tensor.map(DeviceTensor::tensor)), self.sizes)
    }

    pub(crate) fn push(&mut self, field: &Field, shape: &Shape, tensor: DeviceTensor) {
        let (name, tensor, dtype, shape) = (field.name.clone(), Some(tensor), field.dtype, shape.clone());
        let (varies_in_2d, is_jagged) = (field.varies_in_2d, field.role == Role::Jagged);
        self.fields.push(RawField { name, tensor, dtype, shape, varies_in_2d, is_jagged });
    }

    /// Takes the tensor of a field: `[rows, ..row shape]`, in the field's dtype. Unsigned dtypes are `Int` tensors.
    ///
    /// # Errors
    /// If there is no such field, if it has another rank or kind, or if it was taken before.
    pub fn take<const D: usize, K: Basic + 'static>(&mut self, name: &str) -> Result<Tensor<D, K>, FieldError> {
        let at = self.find(name)?;
        let field = &mut self.fields[at];
        let kind = type_name::<K>().rsplit("::").next().unwrap_or_default();
        let refused =
            |there: String| FieldError::Tensor { name: name.into(), wanted: format!("Tensor<{D}, {kind}>"), there };
        let Some(tensor) = field.tensor.take() else { return Err(refused("it was taken before".into())) };
        tensor.tensor().downcast().map(|tensor| *tensor).map_err(|tensor| {
            field.tensor = Some(DeviceTensor::from(tensor));
            refused(field.what())
        })
    }

    /// Takes an `Int` tensor in the device's own integer dtype, cast on the device if the field has another dtype. Use
    /// it for labels: Burn's metrics compare them with the result of `argmax`, and integers of different dtypes cannot
    /// be compared.
    ///
    /// # Errors
    /// As for [`take`](Self::take), and if a value does not fit the device's own integer dtype. Then [`take`](Self::take) still returns the
    /// field unchanged.
    pub fn take_int<const D: usize>(&mut self, name: &str) -> Result<Tensor<D, Int>, FieldError> {
        let tensor = self.take::<D, Int>(name)?;
        let int_dtype = self.device.settings().int_dtype;
        let (into, dtype) = (DType::from(int_dtype), tensor.dtype());
        if dtype == into {
            return Ok(tensor);
        }
        let at = self.find(name)?;
        if !always_fits(dtype, into) && self.compared.fit_of(at) != Some(into) {
            // A value does not fit, or the values were not checked.
            let found = first_beyond(tensor.to_data().as_bytes(), dtype, into);
            if let Some((place, value)) = found {
                self.fields[at].tensor = Some(DeviceTensor::from(Box::new(tensor) as AnyTensor));
                let (name, row) = (name.into(), self.row_of(at, place));
                return Err(FieldError::Range { name, value, row, into: into.name(), dtype: dtype.name() });
            }
        }
        Ok(tensor.cast(int_dtype))
    }

    /// The row of a value of a field.
    fn row_of(&self, at: usize, value: usize) -> usize {
        let RawField { shape, is_jagged, .. } = &self.fields[at];
        let values = shape.num_elements() / shape.as_slice().first().copied().unwrap_or(1).max(1);
        let step = value / values.max(1);
        if !is_jagged {
            return step;
        }
        let mut sizes = self.sizes.iter().skip(at).step_by(self.fields.len());
        let mut end = 0;
        sizes
            .position(|size| {
                end += size.steps();
                step < end
            })
            .unwrap_or(0)
    }

    /// Returns the height and width of each row of a field that varies in two dimensions ([`Field::padded_2d`],
    /// [`Field::any_size`]), in row order. The rest of a row is padding.
    ///
    /// # Errors
    /// If there is no such field, or if all its rows have one size.
    pub fn sizes(&self, name: &str) -> Result<Vec<[usize; 2]>, FieldError> {
        let at = self.find(name)?;
        if !self.fields[at].varies_in_2d {
            let problem = "has rows of one size: their heights and widths are those of its tensor";
            return Err(of_another_kind(name, problem));
        }
        let of_field = self.sizes.iter().skip(at).step_by(self.fields.len());
        Ok(of_field.map(|size| [size.lines(), size.steps()]).collect())
    }

    /// Takes the values of a column ([`Field::column`](crate::Field::column)), one for each sample, in row order.
    ///
    /// # Errors
    /// If there is no such column, if its values have another type, or if it was taken before.
    pub fn column<T: Clone + Send + Sync + 'static>(&mut self, name: &str) -> Result<Vec<T>, FieldError> {
        let Some(column) = self.columns.iter_mut().find(|column| column.name == name) else {
            self.find(name)?;
            return Err(of_another_kind(name, "is a tensor: take it by `RawBatch::take`"));
        };
        let Some(values) = &mut column.values else {
            let (name, wanted) = (name.into(), format!("a column of {}", type_name::<T>()));
            return Err(FieldError::Tensor { name, wanted, there: "it was taken before".into() });
        };
        let taken = values.take();
        let taken = taken.ok_or_else(|| another_type::<T>(Some(&**values), name))?;
        column.values = None;
        Ok(taken)
    }

    fn find(&self, name: &str) -> Result<usize, FieldError> {
        self.fields.iter().position(|field| field.name == name).ok_or_else(|| {
            if self.columns.iter().any(|column| column.name == name) {
                return of_another_kind(name, "is a column: take it by `RawBatch::column`");
            }
            let known = self.fields.iter().map(|field| format!("`{}`", field.name)).collect::<Vec<_>>().join(", ");
            FieldError::Unknown { name: name.into(), known }
        })
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether the batch has no samples. The loader never makes such a batch.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The loader's device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn key(&self) -> BatchKey {
        self.key
    }

    /// The epoch of the loader, from 0.
    pub fn epoch(&self) -> usize {
        self.key.epoch
    }

    /// The number of the batch in its epoch, from 0.
    pub fn number(&self) -> usize {
        self.key.number
    }

    /// How many batches before this one the training loop had still to take when this one was opened and its samples were drawn: less than
    /// `prefetch` plus the number of slots; up to 63 for a dataset that is kept on the device. With
    /// [`LiveWeights`](crate::order::LiveWeights), the weights are so many steps old, or one more.
    pub fn ahead(&self) -> usize {
        self.key.ahead
    }

    /// The dataset index of each row's sample. Skipped samples are left out, and a replaced sample has the index of its
    /// replacement. Use it for per-sample losses, for lists of hard examples, or to see what
    /// [`BadSamples`](crate::BadSamples) did. `None` in a [`PinnedBatcher`](crate::PinnedBatcher), because Burn does
    /// not pass the indices.
    pub fn indices(&self) -> Option<&[usize]> {
        self.indices.as_deref()
    }

    /// Returns a random generator for this batch only, for augmentation on the device. Its key is (seed, epoch,
    /// position of the first sample in the epoch's global order), so slices of a loader have different random numbers.
    /// A [`PinnedBatcher`](crate::PinnedBatcher) has no epochs: there the seed is 0, and batches are counted in the
    /// order in which they are made. That is not reproducible with several of Burn's workers.
    pub fn rng(&self) -> KeyedRng {
        KeyedRng::new(Purpose::Batch, self.seed, self.key.epoch, self.key.position)
    }
}

fn kind_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool(_) => "Bool",
        dtype if dtype.is_float() => "Float",
        _ => "Int",
    }
}
