//! Samplers that decide which samples share a batch.

use super::base::Sampler;
use crate::{fault::Error, order::draw::LazyMap};
use auto_impl::auto_impl;
use std::{fmt, mem};

/// The batches of one epoch, as a [`BatchSampler`] plans them.
#[derive(derive_more::Debug)]
#[non_exhaustive]
pub struct EpochBatches {
    /// The number of batches.
    pub len: usize,
    /// The indices of each batch, in order. There are `len` batches, and none of them is empty.
    #[debug(skip)]
    pub batches: Box<dyn Iterator<Item = Vec<usize>> + Send>,
}

impl EpochBatches {
    /// `len` batches of indices.
    pub fn new(len: usize, batches: impl Iterator<Item = Vec<usize>> + Send + 'static) -> Self {
        Self { len, batches: Box::new(batches) }
    }
}

/// Decides which samples an epoch has, in which order, and which of them share a batch. Batches may differ in size.
///
/// The same sampler must always return the same batches for the same `dataset_len` and `epoch`. Its
/// [`fingerprint`](Self::fingerprint) identifies it in a [`LoaderState`](crate::LoaderState).
///
/// ```
/// use burn_pinned::order::{BatchSampler, EpochBatches};
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
#[auto_impl(Arc)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `BatchSampler`",
    label = "this must plan the batches of an epoch",
    note = "a `Sampler` becomes one by `FixedBatchSampler::new(sampler, batch_size)`"
)]
pub trait BatchSampler: Send + Sync + fmt::Debug + 'static {
    /// Returns the batches of an epoch.
    ///
    /// It is called on the thread that calls `iter()` or `num_batches()`. If processes share the epoch, it is called
    /// again on a worker. Workers advance the iterator.
    fn batches(&self, dataset_len: usize, epoch: usize) -> EpochBatches;

    /// Returns the number of samples of the largest batch. Slots are sized for it.
    fn max_batch_size(&self, dataset_len: usize) -> usize;

    /// Returns the number of samples of an epoch, for progress reports. It is an estimate if epochs differ.
    fn num_items(&self, dataset_len: usize) -> usize;

    /// Whether an index may occur more than once in an epoch; see [`Sampler::repeats`](super::Sampler::repeats).
    fn repeats(&self) -> bool {
        false
    }

    /// Returns how many samples of the dataset an epoch leaves out, at least; see
    /// [`Sampler::left_out`](super::Sampler::left_out). Default: the difference between the dataset's length and
    /// `num_items`.
    fn left_out(&self, dataset_len: usize) -> usize {
        dataset_len.saturating_sub(self.num_items(dataset_len))
    }

    /// Returns the text that identifies the sampler in a [`LoaderState`](crate::LoaderState). Default: its `Debug`
    /// text. Samplers with different batches must have different texts; see
    /// [`Sampler::fingerprint`](super::Sampler::fingerprint).
    fn fingerprint(&self) -> String {
        format!("{self:?}")
    }

    /// Checks that the sampler fits a dataset of this length. `build` calls it.
    ///
    /// # Errors
    /// [`Error::Config`] if it does not.
    fn check(&self, _dataset_len: usize) -> Result<(), Error> {
        Ok(())
    }
}

/// Cuts the indices of a sampler into batches of one size.
///
/// ```
/// use burn_pinned::order::{BatchSampler, FixedBatchSampler, SequentialSampler};
///
/// let sampler = FixedBatchSampler::new(SequentialSampler, 2)?;
/// assert_eq!(sampler.batches(5, 0).batches.collect::<Vec<_>>(), [vec![0, 1], vec![2, 3], vec![4]]);
/// assert_eq!(sampler.drop_last(true).batches(5, 0).len, 2);
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// It takes as much memory as the sampler, and skipping is as fast.
#[derive(Clone, derive_more::Debug)]
#[debug(bounds(S: Sampler))]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct FixedBatchSampler<S> {
    #[debug("{}", sampler.fingerprint())]
    sampler: S,
    batch_size: usize,
    drop_last: bool,
}

impl<S: Sampler> FixedBatchSampler<S> {
    /// Makes batches of `batch_size` samples. The last batch of an epoch may be smaller.
    ///
    /// # Errors
    /// [`Error::Config`] if `batch_size` is 0.
    pub fn new(sampler: S, batch_size: usize) -> Result<Self, Error> {
        if batch_size == 0 {
            return Err(Error::config("FixedBatchSampler::new", "0 samples make no batch", "use at least 1"));
        }
        Ok(Self { sampler, batch_size, drop_last: false })
    }

    /// Whether to drop a last batch that is not full. Default: no.
    pub fn drop_last(mut self, drop_last: bool) -> Self {
        self.drop_last = drop_last;
        self
    }
}

impl<S: Sampler> BatchSampler for FixedBatchSampler<S> {
    fn batches(&self, dataset_len: usize, epoch: usize) -> EpochBatches {
        let items = self.num_items(dataset_len);
        let indices = self.sampler.indices(dataset_len, epoch);
        EpochBatches::new(items.div_ceil(self.batch_size), in_batches(indices, items, self.batch_size))
    }

    fn max_batch_size(&self, dataset_len: usize) -> usize {
        self.batch_size.min(self.num_items(dataset_len))
    }

    fn num_items(&self, dataset_len: usize) -> usize {
        let len = self.sampler.len(dataset_len);
        if self.drop_last { len - len % self.batch_size } else { len }
    }

    fn repeats(&self) -> bool {
        self.sampler.repeats()
    }

    fn left_out(&self, dataset_len: usize) -> usize {
        self.sampler.left_out(dataset_len).max(dataset_len.saturating_sub(self.num_items(dataset_len)))
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        let len = self.sampler.len(dataset_len);
        if self.drop_last && len < self.batch_size {
            let problem = format!("{len} samples do not fill one batch of {}, so all are left out", self.batch_size);
            return Err(Error::config("drop_last", problem, "use smaller batches, or keep the last batch"));
        }
        self.sampler.check(dataset_len)
    }
}

/// Cuts the first `items` indices into batches of `size`. There are fewer if the indices end early.
pub(crate) fn in_batches(
    mut indices: impl Iterator<Item = usize>,
    items: usize,
    size: usize,
) -> impl Iterator<Item = Vec<usize>> {
    let mut next = 0;
    LazyMap::new(items.div_ceil(size), move |number| {
        let skipped: usize = (number - mem::replace(&mut next, number + 1)) * size;
        if let Some(last) = skipped.checked_sub(1) {
            indices.nth(last);
        }
        let batch: Vec<usize> = indices.by_ref().take(size.min(items - number * size)).collect();
        (!batch.is_empty()).then_some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::sampler::{RandomSampler, RandomWithReplacementSampler};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn batches_are_chunks_of_the_order(
            len in 0usize..100, size in 1usize..12, drop_last: bool, skips in prop::collection::vec(0usize..5, 0..6),
        ) {
            let order: Vec<usize> = RandomSampler::new(1).indices(len, 2).collect();
            let chunks: Vec<_> = order.chunks(size).filter(|chunk| !drop_last || chunk.len() == size).collect();
            let sampler = FixedBatchSampler::new(RandomSampler::new(1), size).unwrap().drop_last(drop_last);
            let mut planned = sampler.batches(len, 2);
            prop_assert_eq!(planned.len, chunks.len());
            prop_assert_eq!(sampler.num_items(len), chunks.iter().map(|chunk| chunk.len()).sum::<usize>());
            prop_assert!(chunks.iter().all(|chunk| chunk.len() <= sampler.max_batch_size(len)));
            let mut at = 0;
            for skip in skips {
                let batch = planned.batches.nth(skip);
                prop_assert_eq!(batch.as_deref(), chunks.get(at + skip).copied());
                at = (at + skip + 1).min(chunks.len());
            }
            prop_assert!(planned.batches.eq(chunks[at..].iter().map(|chunk| chunk.to_vec())));
        }
    }

    #[test]
    fn an_endless_sampler_makes_endless_batches() {
        let sampler = FixedBatchSampler::new(RandomWithReplacementSampler::new(1).with_size(usize::MAX), 10).unwrap();
        assert_eq!(sampler.batches(5, 0).batches.nth(1 << 40).map(|batch| batch.len()), Some(10));
        assert!(sampler.repeats());
        assert!(FixedBatchSampler::new(RandomSampler::new(1), 0).is_err());
    }

    #[test]
    fn an_epoch_that_is_all_left_out_is_refused() {
        let sampler = FixedBatchSampler::new(RandomSampler::new(1), 8).unwrap();
        assert!(sampler.check(5).is_ok());
        let error = sampler.clone().drop_last(true).check(5).unwrap_err().to_string();
        assert!(error.contains("5 samples do not fill one batch of 8"), "{error}");
        assert_eq!([5, 16, 20].map(|len| sampler.left_out(len)), [0; 3]);
        assert_eq!(sampler.drop_last(true).left_out(20), 4);
    }
}
