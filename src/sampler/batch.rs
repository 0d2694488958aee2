//! Samplers that decide which samples share a batch.

use crate::error::Error;
use std::{fmt, sync::Arc};

/// The batches of one epoch, as a [`BatchSampler`] plans them.
#[non_exhaustive]
pub struct EpochBatches {
    /// How many there are.
    pub len: usize,
    /// The indices of each, in order: `len` batches, none of them empty.
    pub batches: Box<dyn Iterator<Item = Vec<usize>> + Send>,
}

impl EpochBatches {
    /// `len` batches of indices.
    pub fn new(len: usize, batches: impl Iterator<Item = Vec<usize>> + Send + 'static) -> Self {
        Self { len, batches: Box::new(batches) }
    }
}

impl fmt::Debug for EpochBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EpochBatches").field("len", &self.len).finish_non_exhaustive()
    }
}

/// Says which samples an epoch has, in which order, and which of them share a batch. Batches may differ in size.
///
/// The same sampler must give the same batches for the same `len` and `epoch`, always. Its `Debug` text stands for it in a
/// [`LoaderState`](crate::LoaderState), as that of a [`Sampler`](super::Sampler) does: samplers that batch differently must differ
/// there, and the text must not change by itself.
///
/// ```
/// use burn_pinned::{BatchSampler, EpochBatches};
///
/// /// Neighbours in pairs; what is left over makes no batch.
/// #[derive(Debug)]
/// struct Pairs;
///
/// impl BatchSampler for Pairs {
///     fn batches(&self, dataset_len: usize, _epoch: usize) -> EpochBatches {
///         let pairs = dataset_len / 2;
///         EpochBatches::new(pairs, (0..pairs).map(|pair| vec![2 * pair, 2 * pair + 1]))
///     }
///     fn max_batch_size(&self, _dataset_len: usize) -> usize {
///         2
///     }
///     fn num_items(&self, dataset_len: usize) -> usize {
///         dataset_len / 2 * 2
///     }
/// }
/// assert_eq!(Pairs.batches(5, 0).batches.collect::<Vec<_>>(), [[0, 1], [2, 3]]);
/// ```
pub trait BatchSampler: Send + Sync + fmt::Debug + 'static {
    /// The batches of an epoch. Called on the thread that calls `iter()` (where processes share the epoch, once more on a worker)
    /// or asks for the number of batches; the iterator is advanced on workers.
    fn batches(&self, dataset_len: usize, epoch: usize) -> EpochBatches;

    /// The samples of the largest batch: slots have room for so many.
    fn max_batch_size(&self, dataset_len: usize) -> usize;

    /// The samples of an epoch, for progress; an estimate where epochs differ.
    fn num_items(&self, dataset_len: usize) -> usize;

    /// As [`Sampler::repeats`](super::Sampler::repeats).
    fn repeats(&self) -> bool {
        false
    }

    /// Whether the sampler fits a dataset of this length; called by `build`.
    ///
    /// # Errors
    /// [`Error::Config`].
    fn check(&self, _dataset_len: usize) -> Result<(), Error> {
        Ok(())
    }
}

/// A sampler that is shared, or chosen at run time.
impl<S: BatchSampler + ?Sized> BatchSampler for Arc<S> {
    fn batches(&self, dataset_len: usize, epoch: usize) -> EpochBatches {
        (**self).batches(dataset_len, epoch)
    }

    fn max_batch_size(&self, dataset_len: usize) -> usize {
        (**self).max_batch_size(dataset_len)
    }

    fn num_items(&self, dataset_len: usize) -> usize {
        (**self).num_items(dataset_len)
    }

    fn repeats(&self) -> bool {
        (**self).repeats()
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        (**self).check(dataset_len)
    }
}
