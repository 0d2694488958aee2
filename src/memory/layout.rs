//! The layout of a batch: named fields, and where each of them lies in a slot.

use super::image_field::{Decoder, ImageField, Values};
use crate::{fault::Error, picture_row::PictureRow};
use burn::tensor::{DType, Element, Shape};
use std::{borrow::Cow, sync::Arc};

/// Each field starts at a multiple of this: a cache line, which is more than any dtype's alignment.
const ALIGN: usize = 64;

/// A named part of every sample, and so a tensor of the batch.
///
/// ```
/// use burn::tensor::{BoolStore, DType};
/// use burn_pinned::Field;
///
/// let image = Field::new("image", DType::U8, [3, 224, 224]); // batch: [N, 3, 224, 224]
/// let label = Field::new("label", DType::I64, []); // batch: [N]
/// let mask = Field::new("mask", DType::Bool(BoolStore::Native), [10]); // batch: [N, 10]
/// let tokens = Field::padded("tokens", [512], 0i64); // batch: [N, longest of the batch]
/// ```
///
/// For an accelerator, let the field have the dtype of the data, for example bytes, and make floats in
/// [`finish`](crate::Collate::finish): fewer bytes cross the link. On a CPU backend nothing does. There floats that
/// [`write`](crate::Collate::write) puts into their place ([`slice_mut`](crate::RowMut::slice_mut)) are faster, since
/// nothing passes over the batch again.
#[derive(Debug, Clone)]
pub struct Field {
    pub(crate) name: Cow<'static, str>,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    /// The bytes of one padding value, for a field whose rows vary in size.
    pub(crate) pad: Option<Vec<u8>>,
    /// The last two dimensions of its rows vary, not the first.
    pub(crate) is_flat: bool,
    /// Set if the field is one of images.
    pub(super) image: Option<Box<ImageField>>,
    /// An option of image fields was set, but the field is no image field.
    pub(super) no_image: bool,
}

impl Field {
    /// Makes a field whose rows all have this shape. The shape is without the batch dimension; `[]` is one value for
    /// each sample.
    pub fn new(name: impl Into<Cow<'static, str>>, dtype: DType, shape: impl Into<Vec<usize>>) -> Self {
        Self { name: name.into(), dtype, shape: shape.into(), pad: None, is_flat: false, image: None, no_image: false }
    }

    /// Makes a field whose rows vary in their first dimension. Each batch is padded with `pad` to its own longest row
    /// (at least 1).
    ///
    /// `max` is the shape of the longest row that is accepted, and slots are sized for it. The dtype is that of `pad`.
    /// The device does not get to know how long each row is. If that matters, for example for a mask, send it in a
    /// field of its own.
    ///
    /// ```
    /// # use burn::data::{dataloader::DataLoader, dataset::InMemDataset};
    /// use burn::{prelude::*, tensor::DType};
    /// use burn_pinned::{BoxError, Collate, Field, RawBatch, RowMut};
    /// # use burn_pinned::PinnedDataLoaderBuilder;
    ///
    /// struct Texts;
    /// impl Collate<Vec<i64>> for Texts {
    ///     type Batch = (Tensor<2, Int>, Tensor<2, Bool>);
    ///     fn layout(&self) -> Vec<Field> {
    ///         vec![Field::padded("tokens", [512], 0i64), Field::new("length", DType::I32, [])]
    ///     }
    ///     fn write(&self, tokens: &Vec<i64>, row: &mut RowMut<'_>) -> Result<(), BoxError> {
    ///         row.write("tokens", tokens)?;
    ///         Ok(row.put("length", tokens.len() as i32)?)
    ///     }
    ///     fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
    ///         let (tokens, length) = (batch.take::<2, Int>("tokens")?, batch.take_int::<1>("length")?);
    ///         let [rows, longest] = tokens.dims();
    ///         let step = Tensor::<1, Int>::arange(0..longest as i64, &tokens.device()).reshape([1, longest]);
    ///         let mask = step.expand([rows, longest]).lower(length.reshape([rows, 1]).expand([rows, longest]));
    ///         Ok((tokens, mask)) // the mask is true where a token is no padding
    ///     }
    /// }
    /// # let dataset = InMemDataset::new(vec![vec![7i64, 8, 9], vec![5]]);
    /// # let loader = PinnedDataLoaderBuilder::new(Texts).batch_size(2).build(dataset)?;
    /// # let (tokens, mask) = loader.iter().next().unwrap()?;
    /// # assert_eq!(tokens.into_data().try_to_vec::<i64>()?, [7, 8, 9, 5, 0, 0]);
    /// # assert_eq!(mask.into_data().iter::<bool>().collect::<Vec<_>>(), [true, true, true, true, false, false]);
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn padded<E: Element>(name: impl Into<Cow<'static, str>>, max: impl Into<Vec<usize>>, pad: E) -> Self {
        let pad = Some(bytemuck::bytes_of(&pad).to_vec());
        Self { pad, ..Self::new(name, E::dtype(), max) }
    }

    /// Makes a field whose rows vary in their last two dimensions, as masks and depths of images of different sizes do. Each
    /// batch is padded with `pad` to its own tallest and widest row (at least 1). Rows stand at the top left.
    ///
    /// `max` is the shape of the largest row that is accepted, `[.., height, width]`, and slots are sized for it. The dtype
    /// is that of `pad`. A row is written by [`RowMut::write_2d`](crate::RowMut::write_2d).
    /// [`RawBatch::sizes`](crate::RawBatch::sizes) has the height and width of each row. Images of different sizes are a
    /// [`Field::image`] of [`any_size`](Self::any_size).
    ///
    /// ```
    /// # use burn::data::{dataloader::DataLoader, dataset::InMemDataset};
    /// use burn::prelude::*;
    /// use burn_pinned::{BoxError, Collate, Field, RawBatch, RowMut};
    /// # use burn_pinned::PinnedDataLoaderBuilder;
    ///
    /// #[derive(Clone)]
    /// struct Mask { size: [usize; 2], classes: Vec<u8> }
    ///
    /// struct Masks;
    /// impl Collate<Mask> for Masks {
    ///     type Batch = (Tensor<3, Int>, Vec<[usize; 2]>);
    ///     fn layout(&self) -> Vec<Field> {
    ///         vec![Field::padded_2d("mask", [800, 1333], 255u8)]
    ///     }
    ///     fn write(&self, mask: &Mask, row: &mut RowMut<'_>) -> Result<(), BoxError> {
    ///         Ok(row.write_2d("mask", mask.size, &mask.classes)?)
    ///     }
    ///     fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
    ///         Ok((batch.take("mask")?, batch.sizes("mask")?))
    ///     }
    /// }
    /// # let masks = vec![Mask { size: [1, 3], classes: vec![1, 2, 3] }, Mask { size: [2, 1], classes: vec![4, 5] }];
    /// # let loader = PinnedDataLoaderBuilder::new(Masks).batch_size(2).build(InMemDataset::new(masks))?;
    /// # let (masks, sizes) = loader.iter().next().unwrap()?;
    /// # assert_eq!((masks.dims(), sizes), ([2, 2, 3], vec![[1, 3], [2, 1]]));
    /// # assert_eq!(masks.into_data().try_to_vec::<u8>()?, [1, 2, 3, 255, 255, 255, 4, 255, 255, 5, 255, 255]);
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn padded_2d<E: Element>(name: impl Into<Cow<'static, str>>, max: impl Into<Vec<usize>>, pad: E) -> Self {
        Self { is_flat: true, ..Self::padded(name, max, pad) }
    }

    /// The field's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The dtype of its values, in the slot and on the device.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape of a row (of the longest row, if padded).
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How the rows of a padded field lie in a slot before they are trimmed.
    pub(crate) fn planes(&self) -> Planes {
        let value = self.dtype.size();
        match &self.shape[..] {
            [planes @ .., lines, steps] if self.is_flat => {
                Planes { planes: planes.iter().product(), lines: *lines, steps: *steps, step_bytes: value }
            }
            [steps, rest @ ..] => {
                Planes { planes: 1, lines: 1, steps: *steps, step_bytes: rest.iter().product::<usize>() * value }
            }
            [] => Planes { planes: 1, lines: 1, steps: 1, step_bytes: value },
        }
    }

    /// Returns the shape of a batch of `rows` rows. The rows of a padded field have this size.
    pub(crate) fn batch_shape(&self, rows: usize, size: RowSize) -> Shape {
        let mut shape = vec![rows];
        shape.extend(&self.shape);
        if self.pad.is_some() {
            match &mut shape[..] {
                [.., lines, steps] if self.is_flat => (*lines, *steps) = (size.lines(), size.steps()),
                shape => shape[1] = size.steps(),
            }
        }
        Shape::from(shape)
    }
}

/// The size of a row of a padded field: its lines, and the steps of each. Where only the first dimension varies, a row is one
/// line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RowSize([u32; 2]); // larger rows are beyond any memory

impl RowSize {
    pub(crate) fn new(lines: usize, steps: usize) -> Self {
        Self([lines, steps].map(|count| u32::try_from(count).unwrap_or(u32::MAX)))
    }

    pub(crate) fn lines(self) -> usize {
        self.0[0] as usize
    }

    pub(crate) fn steps(self) -> usize {
        self.0[1] as usize
    }

    /// The least size that covers both.
    pub(crate) fn cover(self, other: Self) -> Self {
        Self([self.0[0].max(other.0[0]), self.0[1].max(other.0[1])])
    }
}

/// How the rows of a padded field lie in a slot: in planes of lines of steps, each as large as it may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planes {
    pub(crate) planes: usize,
    pub(crate) lines: usize,
    pub(crate) steps: usize,
    pub(crate) step_bytes: usize,
}

/// Where the rows of a field lie in a slot.
#[derive(Debug, Clone, Copy)]
struct FieldBytes {
    offset: usize,
    /// Bytes and values of a row.
    row_bytes: usize,
    /// The values of a row. 0 for a field of images, which takes files and no values.
    values: usize,
}

/// Where the fields of a batch of at most `rows` rows lie in a slot: one after another, each in row order.
#[derive(Debug)]
pub(crate) struct SlotLayout {
    pub(crate) fields: Vec<Field>,
    spans: Vec<FieldBytes>,
    rows: usize,
    bytes: usize,
    /// The values of the fields of images.
    images: Vec<Option<Arc<Values>>>,
    /// Whether the rows of images are for a device that decodes them.
    pub(crate) decoding: bool,
}

impl SlotLayout {
    /// Lays out `fields` for `rows` rows, and checks the layout.
    pub(crate) fn new(fields: Vec<Field>, rows: usize) -> Result<Self, Error> {
        Self::of(fields, rows, false)
    }

    /// Returns the layout in which fields of images are for a device that decodes them.
    pub(crate) fn for_decoding(&self) -> Result<Self, Error> {
        Self::of(self.fields.clone(), self.rows, true)
    }

    /// Where the images are to be decoded, if there are any.
    pub(crate) fn decoder(&self) -> Option<Decoder> {
        let images = self.fields.iter().filter_map(|field| Some((field.image.as_ref()?.decoder, field.is_for_host())));
        images
            .map(|(decoder, is_for_host)| if is_for_host { Decoder::Host } else { decoder })
            .max_by_key(|decoder| *decoder == Decoder::Host)
    }

    fn of(mut fields: Vec<Field>, rows: usize, decoding: bool) -> Result<Self, Error> {
        let wrong = |problem: String, advice: &str| Error::config("Collate::layout", problem, advice);
        if fields.is_empty() {
            return Err(wrong("it has no field".into(), "name at least one `Field`"));
        }
        if fields.len() > MAX_FIELDS {
            return Err(wrong(
                format!("it has {} fields", fields.len()),
                "use at most 64, or put several values into one",
            ));
        }
        for field in fields.iter_mut().filter(|field| field.is_flat && field.image.is_some()) {
            field.pad = Some(vec![0; field.dtype.size()]); // zero in any dtype
        }
        let (mut spans, mut end) = (Vec::with_capacity(fields.len()), 0usize);
        for (at, field) in fields.iter().enumerate() {
            let name = &field.name;
            if fields[..at].iter().any(|other| other.name == *name) {
                return Err(wrong(format!("two fields are named `{name}`"), "give each its own name"));
            }
            if matches!(field.dtype, DType::QFloat(_)) {
                return Err(wrong(
                    format!("field `{name}` is quantised"),
                    "send plain values and quantise in `finish`",
                ));
            }
            if field.is_flat && field.shape.len() < 2 {
                return Err(wrong(
                    format!("padded field `{name}` has no two dimensions to pad"),
                    "give the largest row's shape, [.., height, width]",
                ));
            }
            if field.pad.is_some() && field.shape.is_empty() {
                return Err(wrong(
                    format!("padded field `{name}` has no dimension to pad"),
                    "give the longest row's shape",
                ));
            }
            if field.shape.len() > MAX_ROW_RANK {
                let problem = format!("rows of field `{name}` have {} dimensions", field.shape.len());
                return Err(wrong(problem, "use at most 7 and reshape in `finish`"));
            }
            field.check_image()?;
            let decoder = |field: &Field| field.image.as_ref().map(|image| image.decoder);
            let differs = |other: &&Field| other.image.is_some() && decoder(other) != decoder(field);
            if let Some(other) = fields[..at].iter().find(differs).filter(|_| field.image.is_some()) {
                let problem = format!("the images `{}` and `{name}` have different decoders", other.name);
                return Err(wrong(problem, "give both the same"));
            }
            // A device gets bytes, and makes the values.
            let of_bytes = field.image.is_some() && decoding;
            let value = if of_bytes { 1 } else { field.dtype.size() };
            let row = field.shape.iter().try_fold(value, |bytes, dim| bytes.checked_mul(*dim));
            let row = match of_bytes {
                true => row.and_then(|row| row.checked_add(PictureRow::BYTES)?.checked_next_multiple_of(ALIGN)),
                false => row,
            };
            let span = row.and_then(|row| row.checked_mul(rows)).and_then(|span| span.checked_next_multiple_of(ALIGN));
            let (Some(row), Some(next)) = (row, span.and_then(|span| end.checked_add(span))) else {
                return Err(wrong(format!("field `{name}` is larger than the address space"), "check its shape"));
            };
            if row == 0 || field.shape.contains(&0) {
                return Err(wrong(format!("rows of field `{name}` are empty"), "give every dimension at least 1"));
            }
            let values = if field.image.is_some() { 0 } else { row / field.dtype.size() };
            spans.push(FieldBytes { offset: end, row_bytes: row, values });
            end = next;
        }
        let values = |field: &Field| Some(Arc::new(Values::of(field.image.as_ref()?, field.dtype)));
        let images = fields.iter().map(values).collect();
        Ok(Self { fields, spans, rows, bytes: end, images, decoding })
    }

    /// The bytes of a full slot.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The most rows that a slot takes.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Where the rows of a field start.
    #[inline]
    pub(crate) fn offset(&self, field: usize) -> usize {
        self.spans[field].offset
    }

    /// The bytes of one row of a field, in the slot.
    #[inline]
    pub(crate) fn row_bytes(&self, field: usize) -> usize {
        self.spans[field].row_bytes
    }

    /// The values of one row of a field (of the longest, if padded).
    #[inline]
    pub(crate) fn values(&self, field: usize) -> usize {
        self.spans[field].values
    }

    /// The longest file that the device gets for a field of images.
    #[cfg(feature = "vision")]
    pub(crate) fn room(&self, field: usize) -> usize {
        self.fields[field].image.as_ref().map_or(0, |image| image.room)
    }

    /// The image's part of a field of images.
    #[cfg(feature = "vision")]
    pub(crate) fn image_field(&self, field: usize) -> Option<&ImageField> {
        self.fields[field].image.as_deref()
    }

    /// The values of a field of images. `None` for other fields.
    pub(crate) fn image_values(&self, field: usize) -> Option<&Arc<Values>> {
        self.images[field].as_ref()
    }

    /// Returns the word of bits of a row in which all fields are written.
    #[inline]
    pub(crate) fn all_written(&self) -> u64 {
        u64::MAX >> (MAX_FIELDS - self.spans.len())
    }

    pub(crate) fn has_padded(&self) -> bool {
        self.fields.iter().any(|field| field.pad.is_some())
    }
}

/// [`RowMut`](crate::RowMut) notes which fields were written as bits of one word.
const MAX_FIELDS: usize = 64;

/// Burn tensors are taken with up to 8 dimensions, including the batch dimension.
const MAX_ROW_RANK: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_aligned_and_disjoint() {
        let fields =
            vec![Field::new("a", DType::U8, [3]), Field::new("b", DType::F32, [5]), Field::new("c", DType::I64, [])];
        let layout = SlotLayout::new(fields, 7).unwrap();
        let mut end = 0;
        for field in 0..3 {
            assert_eq!(layout.offset(field) % ALIGN, 0);
            assert!(layout.offset(field) >= end);
            end = layout.offset(field) + 7 * layout.row_bytes(field);
        }
        assert!(layout.bytes() >= end);
        assert_eq!((layout.row_bytes(0), layout.row_bytes(1), layout.row_bytes(2)), (3, 20, 8));
    }

    #[test]
    fn a_wrong_layout_is_refused_with_its_reason() {
        let cases: [(Vec<Field>, &str); 6] = [
            (vec![], "no field"),
            (vec![Field::new("a", DType::U8, []), Field::new("a", DType::F32, [])], "two fields are named `a`"),
            (vec![Field::new("a", DType::U8, [0])], "are empty"),
            (vec![Field::new("a", DType::U8, [usize::MAX, 2])], "larger than the address space"),
            (vec![Field::padded("a", [], 0u8)], "no dimension to pad"),
            (vec![Field::new("a", DType::U8, [1; 8])], "8 dimensions"),
        ];
        for (fields, reason) in cases {
            let message = SlotLayout::new(fields, 4).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
        }
    }
}
