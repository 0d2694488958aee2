//! How samples become a batch, in three steps.

use super::{raw::RawBatch, row::RowMut};
use crate::{fault::BoxError, memory::Field};
use auto_impl::auto_impl;
use std::sync::Arc;

/// Makes batches from samples: defines the fields of a batch, writes a sample into its row, and turns the tensors on
/// the device into the user's batch. [`collate`](crate::collate) makes one from closures.
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
///         let images = batch.take::<4, Int>("image")?.float() / 255.0; // copied to the device as u8
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

    /// Returns the fields of a sample. Called once, when the loader is built.
    fn layout(&self) -> Vec<Field>;

    /// Writes one sample into its row. It must write every field. Runs on workers, for several samples at the same
    /// time.
    ///
    /// # Errors
    /// Any error. The consumer gets it in place of the batch, with the sample's index.
    fn write(&self, sample: &I, row: &mut RowMut<'_>) -> Result<(), BoxError>;

    /// Makes the user's batch. It runs in `next()`, on the training thread: its operations are queued before those of the step, which takes
    /// only microseconds. On a CPU backend the operations would delay the step, so a worker runs it.
    ///
    /// Slow work on the host belongs in [`write`](Self::write).
    ///
    /// # Errors
    /// Any error. The consumer gets it in place of the batch.
    fn finish(&self, batch: RawBatch) -> Result<Self::Batch, BoxError>;
}

/// Makes a [`Collate`] from three parts: the fields of a sample, a closure that writes one sample into its row, and a closure that makes
/// the batch. They correspond to [`Collate::layout`], [`Collate::write`] and [`Collate::finish`], and run on the same threads.
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
/// Write the sample's type in the first closure, like `&House` here. Everything else is inferred. Both closures return a
/// [`BoxError`](crate::BoxError), into which `?` converts any error: so write `Ok(row.put(..)?)`, not just `row.put(..)`. Clones share the
/// closures, so the loaders for training and validation can use the same collate. A function returns it as `impl Collate<House, Batch =
/// ..>`. If its type must have a name, for example for a field of a struct, implement [`Collate`] for a type of your own.
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
