//! Fields: the named parts of a sample.

use super::{
    column::{Column, empty_column},
    row_size::{Planes, RowSize},
};
use crate::image_rows::ImageField;
use burn::tensor::{DType, Element, Shape};
use std::borrow::Cow;

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
/// For an accelerator, give the field the dtype of the data, for example bytes, and convert to floats in
/// [`finish`](crate::Collate::finish): then fewer bytes are copied. On a CPU backend nothing is copied. There it is
/// faster to compute the floats in [`write`](crate::Collate::write), straight into the row
/// ([`slice_mut`](crate::RowMut::slice_mut)), because that saves another pass over the batch.
#[derive(Debug, Clone)]
pub struct Field {
    pub(crate) name: Cow<'static, str>,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    /// The bytes of one padding value, for a field whose rows vary in size.
    pub(crate) pad: Option<Vec<u8>>,
    /// Whether the last two dimensions of its rows vary, instead of the first.
    pub(crate) varies_in_2d: bool,
    pub(crate) role: Role,
    /// Whether the loader adds the row of each of its steps.
    pub(crate) has_rows: bool,
    /// Set if its values must fit the dtype that its tensor is cast to: this dtype, or with `None` the device's own integer dtype. A value
    /// that does not fit is an error of its row. Not set if the field may not be cast at all.
    pub(crate) cast: Option<Option<DType>>,
    /// Makes a column of this many rows, if the field is a column.
    pub(crate) column: Option<fn(usize) -> Box<dyn Column>>,
    /// Set if this is an image field.
    pub(super) image: Option<Box<ImageField>>,
    /// An option of image fields was set, but this is not an image field.
    pub(super) no_image: bool,
}

/// Whether the loader adds a field after this one, or has added this one after another field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    #[default]
    Plain,
    /// Its mask comes next in the layout.
    Masked,
    /// Its rows lie end to end, and their offsets come next in the layout.
    Jagged,
    /// The mask of the field before it: true for values, false for padding.
    Mask,
    /// Where each row of the jagged field before it begins and ends.
    Offsets,
    /// The row of each step of the jagged field before its offsets.
    Rows,
}

impl Field {
    /// Makes a field whose rows all have this shape. The shape excludes the batch dimension; `[]` means one value per
    /// sample.
    pub fn new(name: impl Into<Cow<'static, str>>, dtype: DType, shape: impl Into<Vec<usize>>) -> Self {
        Self {
            name: name.into(),
            dtype,
            shape: shape.into(),
            pad: None,
            varies_in_2d: false,
            role: Role::Plain,
            has_rows: false,
            cast: None,
            column: None,
            image: None,
            no_image: false,
        }
    }

    /// Makes a field whose rows vary in their first dimension. Each batch is padded with `pad` to its own longest row
    /// (at least 1).
    ///
    /// `max` is the shape of the longest accepted row. Slots are sized for it. The dtype is that of `pad`.
    /// [`with_mask`](Self::with_mask) adds a mask of the values.
    ///
    /// ```
    /// use burn::data::dataset::InMemDataset;
    /// use burn::prelude::*;
    /// use burn_pinned::{BoxError, Field, PinnedDataLoaderBuilder, collate};
    ///
    /// let texts = collate(
    ///     [Field::padded("tokens", [512], 0i64)],
    ///     |tokens: &Vec<i64>, row| Ok(row.write("tokens", tokens)?),
    ///     |mut batch| Ok(batch.take::<2, Int>("tokens")?),
    /// );
    /// let dataset = InMemDataset::new(vec![vec![7i64, 8, 9], vec![5]]);
    /// let loader = PinnedDataLoaderBuilder::new(texts).batch_size(2).build(dataset)?;
    /// let tokens = loader.iter().next().unwrap()?;
    /// assert_eq!(tokens.into_data().try_to_vec::<i64>()?, [7, 8, 9, 5, 0, 0]);
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// A longer row is an error of its sample, also with `padded = [512]` in the derive. Truncate it first: in a
    /// closure write `&tokens[..tokens.len().min(512)]`; truncate rows of files with their `map`. To find the longest
    /// row, read the column:
    ///
    /// ```
    /// # use burn::data::dataset::Dataset;
    /// use burn_pinned::data::Rows;
    ///
    /// #[derive(serde::Deserialize)] // and `Sample`
    /// struct Row {
    ///     tokens: Vec<i64>,
    /// }
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("all.jsonl");
    /// # std::fs::write(&path, "{\"tokens\": [7, 8, 9]}\n{\"tokens\": [5]}\n")?;
    ///
    /// let rows = Rows::<Row>::jsonl(path).open()?;
    /// let longest = rows.column::<Vec<i64>>("tokens")?.iter().map(Vec::len).max(); // reads only that column
    /// assert_eq!(longest, Some(3));
    /// let cut = rows.map(|mut row| {
    ///     row.tokens.truncate(2);
    ///     Ok(row)
    /// });
    /// assert_eq!(cut.get(0)?.tokens, [7, 8]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn padded<E: Element>(name: impl Into<Cow<'static, str>>, max: impl Into<Vec<usize>>, pad: E) -> Self {
        let pad = Some(bytemuck::bytes_of(&pad).to_vec());
        Self { pad, ..Self::new(name, E::dtype(), max) }
    }

    /// Makes a field whose rows vary in their last two dimensions, such as masks or depth maps of different sizes. Each batch is padded
    /// with `pad` to its own tallest and widest row (at least 1). Values are at the top left.
    ///
    /// `max` is the shape of the largest accepted row, `[.., height, width]`. Slots are sized for it. The dtype is that of `pad`. Write
    /// rows with [`RowMut::write_2d`](crate::RowMut::write_2d). [`RawBatch::sizes`](crate::RawBatch::sizes) has the height and width of
    /// each row. For images of different sizes use a [`Field::image`] of [`any_size`](Self::any_size).
    ///
    /// ```
    /// # use burn::data::dataset::InMemDataset;
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
        Self { varies_in_2d: true, ..Self::padded(name, max, pad) }
    }

    /// Makes a column: a field for values other than tensors, such as captions, keys and paths. Each row has one value of type `T`, which
    /// [`RowMut::put_column`](crate::RowMut::put_column) moves there. [`RawBatch::column`](crate::RawBatch::column) takes the values of a
    /// batch, in row order, without those of skipped samples.
    ///
    /// ```
    /// use burn::data::dataset::InMemDataset;
    /// use burn::{prelude::*, tensor::DType};
    /// use burn_pinned::{BoxError, Field, PinnedDataLoaderBuilder, collate};
    ///
    /// let captioned = collate(
    ///     [Field::new("x", DType::F32, [2]), Field::column::<String>("caption")],
    ///     |(x, caption): &([f32; 2], String), row| {
    ///         row.write("x", x)?;
    ///         Ok(row.put_column("caption", caption.clone())?)
    ///     },
    ///     |mut batch| Ok((batch.take::<2, Float>("x")?, batch.column::<String>("caption")?)),
    /// );
    /// let dataset = InMemDataset::new(vec![([0.0f32; 2], "none".to_string()), ([1.0; 2], "ones".to_string())]);
    /// let loader = PinnedDataLoaderBuilder::new(captioned).batch_size(2).build(dataset)?;
    /// let (_, captions) = loader.iter().next().unwrap()?;
    /// assert_eq!(captions, ["none", "ones"]);
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// The values are in ordinary memory and remain on the host. `pinned_limit` does not count them, because their size is not known. Their
    /// number is bounded: each batch has at most one value per row, and there are no more batches than slots and batches ready on the
    /// device ([`prefetch`](crate::PinnedDataLoaderBuilder::prefetch)). For large values let `T` be an `Arc`. A dataset that is kept on the
    /// device ([`build_kept`](crate::PinnedDataLoaderBuilder::build_kept)) keeps its columns on the host, and clones the values for each
    /// batch.
    ///
    /// A layout needs at least one field other than columns. [`dtype`](Self::dtype) and [`shape`](Self::shape) of a column have no meaning.
    pub fn column<T: Clone + Send + Sync + 'static>(name: impl Into<Cow<'static, str>>) -> Self {
        Self { column: Some(empty_column::<T>), ..Self::new(name, DType::U8, []) }
    }

    /// The field's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The dtype of its values, in the slot and on the device.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape of a row; of a padded field, the shape of the longest row.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How the rows of a padded field lie in a slot before they are trimmed.
    pub(crate) fn planes(&self) -> Planes {
        let value = self.dtype.size();
        match &self.shape[..] {
            [planes @ .., lines, steps] if self.varies_in_2d => {
                Planes { planes: planes.iter().product(), lines: *lines, steps: *steps, step_bytes: value }
            }
            [steps, rest @ ..] => {
                Planes { planes: 1, lines: 1, steps: *steps, step_bytes: rest.iter().product::<usize>() * value }
            }
            [] => Planes { planes: 1, lines: 1, steps: 1, step_bytes: value },
        }
    }

    /// How many fields the loader adds after this one.
    #[inline]
    pub(crate) fn companion_count(&self) -> usize {
        usize::from(matches!(self.role, Role::Masked | Role::Jagged)) + usize::from(self.has_rows)
    }

    /// Whether its rows lie end to end in a batch.
    pub(crate) fn is_end_to_end(&self) -> bool {
        matches!(self.role, Role::Jagged | Role::Rows)
    }

    /// Returns the shape of a batch of `rows` rows. `size` is the size of each row of a padded field, or the total size of the rows of a
    /// jagged field.
    pub(crate) fn batch_shape(&self, rows: usize, size: RowSize) -> Shape {
        let mut shape = [&[rows], &self.shape[..]].concat();
        match &mut shape[..] {
            [rows] if self.role == Role::Offsets => *rows += 1,
            [.., lines, steps] if self.pad.is_some() && self.varies_in_2d => {
                (*lines, *steps) = (size.lines(), size.steps())
            }
            [_, steps, ..] if self.pad.is_some() => *steps = size.steps(),
            _ => {}
        }
        if self.is_end_to_end() {
            shape.remove(0);
        }
        Shape::from(shape)
    }
}
