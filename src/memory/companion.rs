//! Fields that the loader adds and fills: the mask of a padded field, the offsets of a jagged one, and the row of each of its steps.

use super::field::{Field, Role};
use burn::tensor::{DType, Element};
use std::borrow::Cow;

impl Field {
    /// Makes a field whose rows vary in their first dimension and lie end to end in the batch, without padding. `max` is the shape of the
    /// longest accepted row. Slots are sized for it. The dtype is that of `E`.
    ///
    /// The batch has two tensors. The field's own tensor has the values of all rows, `[steps of all rows, ..]`. The
    /// other one, `<name>_offsets`, is an `Int` tensor of I32 and shape `[rows + 1]`: row `n` is the steps from
    /// `offsets[n]` to `offsets[n + 1]`. If all rows of a batch are empty, the tensor of the values is empty: `[0,
    /// ..]`.
    ///
    /// ```
    /// use burn::data::dataset::InMemDataset;
    /// use burn::prelude::*;
    /// use burn_pinned::{BoxError, Field, PinnedDataLoaderBuilder, collate};
    ///
    /// let texts = collate(
    ///     [Field::jagged::<i64>("tokens", [512])],
    ///     |tokens: &Vec<i64>, row| Ok(row.write("tokens", tokens)?),
    ///     |mut batch| Ok((batch.take::<1, Int>("tokens")?, batch.take::<1, Int>("tokens_offsets")?)),
    /// );
    /// let dataset = InMemDataset::new(vec![vec![7i64, 8, 9], vec![], vec![5]]);
    /// let loader = PinnedDataLoaderBuilder::new(texts).batch_size(3).build(dataset)?;
    /// let (tokens, offsets) = loader.iter().next().unwrap()?;
    /// assert_eq!(tokens.into_data().try_to_vec::<i64>()?, [7, 8, 9, 5]);
    /// assert_eq!(offsets.into_data().try_to_vec::<i32>()?, [0, 3, 3, 4]);
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// [`with_rows`](Self::with_rows) adds the row of each step.
    /// [`build_kept`](crate::PinnedDataLoaderBuilder::build_kept) does not accept jagged fields. If a layout has one, its images are
    /// decoded on the workers.
    pub fn jagged<E: Element>(name: impl Into<Cow<'static, str>>, max: impl Into<Vec<usize>>) -> Self {
        let pad = Some(vec![0; E::dtype().size()]); // zero in any dtype
        Self { pad, role: Role::Jagged, ..Self::new(name, E::dtype(), max) }
    }

    /// Adds a mask to a padded field, or to an image field of [`any_size`](Self::any_size). The batch gets an additional `Bool` tensor,
    /// `<name>_mask`, which is true for values and false for padding. Its shape is `[rows, longest]` or `[rows, tallest, widest]`. The
    /// loader fills it, on the host.
    ///
    /// ```
    /// use burn::data::dataset::InMemDataset;
    /// use burn::prelude::*;
    /// use burn_pinned::{BoxError, Field, PinnedDataLoaderBuilder, collate};
    ///
    /// let texts = collate(
    ///     [Field::padded("tokens", [512], 0i64).with_mask()],
    ///     |tokens: &Vec<i64>, row| Ok(row.write("tokens", tokens)?),
    ///     |mut batch| Ok((batch.take::<2, Int>("tokens")?, batch.take::<2, Bool>("tokens_mask")?)),
    /// );
    /// let dataset = InMemDataset::new(vec![vec![7i64, 8, 9], vec![5]]);
    /// let loader = PinnedDataLoaderBuilder::new(texts).batch_size(2).build(dataset)?;
    /// let (tokens, mask) = loader.iter().next().unwrap()?;
    /// assert_eq!(tokens.dims(), [2, 3]);
    /// assert_eq!(mask.into_data().iter::<bool>().collect::<Vec<_>>(), [true, true, true, true, false, false]);
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// `build` returns an error if all rows of the field have one size, or if the field is [`jagged`](Self::jagged).
    pub fn with_mask(mut self) -> Self {
        if self.role == Role::Jagged {
            self.pad = None; // so that the layout is refused
        }
        self.role = Role::Masked;
        self
    }

    /// Adds the row of each step to a jagged field. The batch gets an additional `Int` tensor of I32, `<name>_rows`, of shape `[steps of
    /// all rows]`: step `n` belongs to the sample in row `rows[n]` of the batch. Libraries for graphs call it `batch`. The loader fills it,
    /// on the host.
    ///
    /// ```
    /// use burn::data::dataset::InMemDataset;
    /// use burn::prelude::*;
    /// use burn_pinned::{BoxError, Field, PinnedDataLoaderBuilder, collate};
    ///
    /// let clouds = collate(
    ///     [Field::jagged::<f32>("points", [512, 3]).with_rows()],
    ///     |points: &Vec<[f32; 3]>, row| Ok(row.write("points", points.as_flattened())?),
    ///     |mut batch| Ok((batch.take::<2, Float>("points")?, batch.take::<1, Int>("points_rows")?)),
    /// );
    /// let dataset = InMemDataset::new(vec![vec![[0.5f32; 3]; 3], vec![], vec![[0.5; 3]]]);
    /// let loader = PinnedDataLoaderBuilder::new(clouds).batch_size(3).build(dataset)?;
    /// let (points, rows) = loader.iter().next().unwrap()?;
    /// assert_eq!(points.dims(), [4, 3]);
    /// assert_eq!(rows.into_data().try_to_vec::<i32>()?, [0, 0, 0, 2]);
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// `build` returns an error if the field is not [`jagged`](Self::jagged).
    pub fn with_rows(self) -> Self {
        Self { has_rows: true, ..self }
    }

    /// The fields that the loader adds after this one.
    fn companions(&self) -> [Option<Self>; 2] {
        match self.role {
            Role::Masked => {
                let max = if self.varies_in_2d {
                    self.shape.last_chunk::<2>().map(|max| &max[..])
                } else {
                    self.shape.get(..1)
                };
                let mask = Self::padded(format!("{}_mask", self.name), max.unwrap_or_default(), false);
                [Some(Self { role: Role::Mask, varies_in_2d: self.varies_in_2d, ..mask }), None]
            }
            Role::Jagged => {
                let offsets = Self::new(format!("{}_offsets", self.name), DType::I32, []);
                let max = self.shape.get(..1).unwrap_or_default();
                let rows = || Self { role: Role::Rows, ..Self::jagged::<i32>(format!("{}_rows", self.name), max) };
                [Some(Self { role: Role::Offsets, ..offsets }), self.has_rows.then(rows)]
            }
            Role::Plain | Role::Mask | Role::Offsets | Role::Rows => [None, None],
        }
    }
}

/// The fields of a collate, and the fields that the loader adds.
pub(crate) fn with_companions(fields: Vec<Field>) -> Vec<Field> {
    let add = |field: Field| {
        let [first, second] = field.companions();
        [Some(field), first, second].into_iter().flatten()
    };
    fields.into_iter().flat_map(add).collect()
}
