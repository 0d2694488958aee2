//! A collate without a type of its own: its fields and two closures.

use super::{collate::Collate, raw::RawBatch, row::RowMut};
use crate::{fault::BoxError, memory::Field};
use std::sync::Arc;

/// Makes a [`Collate`] of its three parts: the fields of a sample, a closure that writes one sample into its row, and one
/// that makes the batch. They are what [`Collate::layout`], [`Collate::write`] and [`Collate::finish`] are, and run on the
/// same threads.
///
/// ```
/// use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType};
/// use burn_pinned::{Field, PinnedDataLoaderBuilder, collate};
///
/// #[derive(Clone)]
/// struct House { rooms: [f32; 4], price: f32 }
///
/// let houses = collate(
///     [Field::new("rooms", DType::F32, [4]), Field::new("price", DType::F32, [])],
///     |house: &House, row| {
///         row.write("rooms", &house.rooms)?;
///         Ok(row.put("price", house.price)?)
///     },
///     |mut batch| Ok((batch.take::<2, Float>("rooms")?, batch.take::<1, Float>("price")?)),
/// );
/// let dataset = InMemDataset::new(vec![House { rooms: [3.0, 2.0, 1.0, 1.0], price: 0.4 }; 10]);
/// let loader = PinnedDataLoaderBuilder::new(houses).batch_size(4).build(dataset)?;
/// let (rooms, price) = loader.iter().next().unwrap()?;
/// assert_eq!((rooms.dims(), price.dims()), ([4, 4], [4]));
/// # Ok::<(), burn_pinned::BoxError>(())
/// ```
///
/// Write the sample's type at the first closure, as `&House` here. All else is inferred. Both closures return a
/// [`BoxError`](crate::BoxError), which `?` makes of any error: so `Ok(row.put(..)?)`, and not `row.put(..)` alone. Clones share the closures, so a
/// loader for training and one for validation may have the same collate. A function gives it as `impl Collate<House, Batch
/// = ..>`. If the collate must have a name, for example as the field of a struct, implement [`Collate`] for a type.
pub fn collate<I, O: Send + 'static>(
    fields: impl Into<Vec<Field>>,
    write: impl Fn(&I, &mut RowMut<'_>) -> Result<(), BoxError> + Send + Sync + 'static,
    finish: impl Fn(RawBatch) -> Result<O, BoxError> + Send + Sync + 'static,
) -> impl Collate<I, Batch = O> + Clone {
    Arc::new(Closures { fields: fields.into(), write, finish })
}

struct Closures<W, F> {
    fields: Vec<Field>,
    write: W,
    finish: F,
}

impl<I, O, W, F> Collate<I> for Closures<W, F>
where
    O: Send + 'static,
    W: Fn(&I, &mut RowMut<'_>) -> Result<(), BoxError> + Send + Sync + 'static,
    F: Fn(RawBatch) -> Result<O, BoxError> + Send + Sync + 'static,
{
    type Batch = O;

    fn layout(&self) -> Vec<Field> {
        self.fields.clone()
    }

    #[inline]
    fn write(&self, sample: &I, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        (self.write)(sample, row)
    }

    fn finish(&self, batch: RawBatch) -> Result<O, BoxError> {
        (self.finish)(batch)
    }
}
