//! How samples become a batch: three parts, on three kinds of thread.

use super::{raw::RawBatch, row::RowMut};
use crate::{fault::BoxError, memory::Field};
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

/// A collate that is shared, or chosen at run time.
impl<I, C: Collate<I> + ?Sized> Collate<I> for Arc<C> {
    type Batch = C::Batch;

    fn layout(&self) -> Vec<Field> {
        (**self).layout()
    }

    fn write(&self, sample: &I, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        (**self).write(sample, row)
    }

    fn finish(&self, batch: RawBatch) -> Result<C::Batch, BoxError> {
        (**self).finish(batch)
    }
}
