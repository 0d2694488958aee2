//! Some positions of a sampler's sequence, for slices of a loader.

use super::{
    base::Sampler,
    batch::{BatchSampler, EpochBatches},
};
use crate::fault::Error;
use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

/// The longest slice that is checked as a whole. An epoch may be endless.
const LONGEST_LOOK: usize = 1 << 20;

/// Some positions of a sampler's sequence.
#[derive(Debug)]
pub(crate) struct Positions<S: ?Sized> {
    of: Arc<S>,
    positions: Range<usize>,
    /// The number of samples of the batches, once `num_items` has counted them.
    items: OnceLock<usize>,
}

impl<S: ?Sized> Positions<S> {
    pub(crate) fn new(of: Arc<S>, positions: Range<usize>) -> Self {
        Self { of, positions, items: OnceLock::new() }
    }
}

impl Sampler for Positions<dyn Sampler> {
    fn len(&self, _dataset_len: usize) -> usize {
        self.positions.len()
    }

    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        Box::new(self.of.indices(dataset_len, epoch).skip(self.positions.start).take(self.positions.len()))
    }

    fn repeats(&self) -> bool {
        self.of.repeats()
    }

    fn fingerprint(&self) -> String {
        format!("{} at positions {:?}", self.of.fingerprint(), self.positions)
    }
}

/// Positions are batches.
impl BatchSampler for Positions<dyn BatchSampler> {
    fn batches(&self, dataset_len: usize, epoch: usize) -> EpochBatches {
        let batches = self.of.batches(dataset_len, epoch).batches;
        EpochBatches::new(self.positions.len(), batches.skip(self.positions.start).take(self.positions.len()))
    }

    fn max_batch_size(&self, dataset_len: usize) -> usize {
        self.of.max_batch_size(dataset_len)
    }

    /// The number is exact if the batches are the same in each epoch, and there are not too many.
    fn num_items(&self, dataset_len: usize) -> usize {
        let len = self.positions.len();
        if len > LONGEST_LOOK {
            return len.saturating_mul(self.of.max_batch_size(dataset_len));
        }
        *self.items.get_or_init(|| self.batches(dataset_len, 0).batches.map(|batch| batch.len()).sum())
    }

    fn repeats(&self) -> bool {
        self.of.repeats()
    }

    fn fingerprint(&self) -> String {
        format!("{} at batches {:?}", self.of.fingerprint(), self.positions)
    }
}

/// Checks that a slice has the same units in this epoch as in another one.
///
/// # Errors
/// [`Error::Config`] if they differ.
pub(crate) fn check_same<T: PartialEq>(
    epoch: usize,
    units: impl Fn(usize) -> Box<dyn Iterator<Item = T> + Send>,
) -> Result<(), Error> {
    let other = usize::from(epoch == 0);
    if units(epoch).take(LONGEST_LOOK).eq(units(other).take(LONGEST_LOOK)) {
        return Ok(());
    }
    let problem = "the sampler orders each epoch anew, so a slice would have other samples in each epoch";
    let advice = "cut the data set with Burn's `PartialDataset`, or build the loader with `.devices(n)` if the slices \
                  are for several devices";
    Err(Error::config("slice", problem, advice))
}
