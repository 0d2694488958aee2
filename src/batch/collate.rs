//! How samples become a batch: three parts, on three kinds of thread.

use super::{raw::RawBatch, row::RowMut};
use crate::{fault::BoxError, memory::Field};
use auto_impl::auto_impl;
use std::sync::Arc;

/// Makes batches from samples: says what a batch looks like, writes a sample into its row, and turns the tensors on the
/// device into the user's batch. [`collate`](crate::collate) makes one of closures.
///
/// ```
/// use burn::{prelude::*, tensor::DType};
/// use burn_pinned::{BoxError, Collate, Field, RawBatch, RowMut};
///
/// #[derive(Clone)]
/// struct Sample { image: Vec<u8>, label: u8 }
/// struct ImageBatch { images: Tensor<4>, labels: Tensor<1, Int> }
/// struct ImageCollate;
///
/// impl Collate<Sample> for ImageCollate {
///     type Batch = ImageBatch;
///
///     fn layout(&self) -> Vec<Field> {
///         vec![Field::new("image", DType::U8, [3, 32, 32]), Field::new("label", DType::I32, [])]
///     }
///     fn write(&self, sample: &Sample, row: &mut RowMut<'_>) -> Result<(), BoxError> {
///         row.write("image", &sample.image)?;
///         Ok(row.put("label", i32::from(sample.label))?)
///     }
///     fn finish(&self, mut batch: RawBatch) -> Result<ImageBatch, BoxError> {
///         let images = batch.take::<4, Int>("image")?.float() / 255.0; // crossed the link as u8
///         Ok(ImageBatch { images, labels: batch.take_int("label")? })
///     }
/// }
/// ```
#[auto_impl(Arc)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `Collate`",
    label = "this must be a `Collate`",
    note = "if it is a Burn `Batcher`, write `PinnedDataLoaderBuilder::from_batcher(..)` instead of `new(..)`"
)]
pub trait Collate<I>: Send + Sync + 'static {
    /// What the training loop gets.
    type Batch: Send + 'static;

    /// The fields of a sample. Called once, when the loader is built.
    fn layout(&self) -> Vec<Field>;

    /// Writes one sample into its row, every field of it. Called on workers, for several samples at once.
    ///
    /// # Errors
    /// Any error; it reaches the consumer at the batch's place, with the sample's index.
    fn write(&self, sample: &I, row: &mut RowMut<'_>) -> Result<(), BoxError>;

    /// Makes the user's batch. It is called in `next()`, on the thread that trains. There the operations that it asks for
    /// are queued in front of the step's, which takes microseconds. On a CPU backend they would take the step's time, so
    /// a worker calls it.
    ///
    /// Work on the host that takes long belongs in [`write`](Self::write).
    ///
    /// # Errors
    /// Any error; it reaches the consumer at the batch's place.
    fn finish(&self, batch: RawBatch) -> Result<Self::Batch, BoxError>;
}

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
