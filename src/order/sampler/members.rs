//! Some samples of the dataset, ordered on their own.

use super::base::Sampler;
use crate::order::draw::{Cursor, LazyMap};
use std::{ops::Range, sync::Arc};

/// The seed of a part that begins at this sample, so that parts of equal length have different orders. The part at 0
/// has the seed of the whole sampler.
pub(super) fn seed_of(seed: u64, first: usize) -> u64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15; // the step of SplitMix64
    seed.wrapping_add((first as u64).wrapping_mul(GOLDEN))
}

/// Neighbouring samples of the dataset, ordered by a sampler as if there were no others.
#[derive(Debug)]
pub(super) struct Members {
    sampler: Arc<dyn Sampler>,
    samples: Range<usize>,
}

impl Members {
    pub(super) fn of(sampler: impl Sampler, samples: Range<usize>) -> Arc<dyn Sampler> {
        Arc::new(Self { sampler: Arc::new(sampler), samples })
    }
}

impl Sampler for Members {
    fn len(&self, _dataset_len: usize) -> usize {
        self.sampler.len(self.samples.len())
    }

    fn indices(&self, _dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let (first, len) = (self.samples.start, self.samples.len());
        let mut indices = Cursor::new(self.sampler.indices(len, epoch));
        // `map` would compute what is skipped.
        Box::new(LazyMap::new(self.sampler.len(len), move |at| Some(first + indices.item(at)?)))
    }

    fn repeats(&self) -> bool {
        self.sampler.repeats()
    }

    fn fingerprint(&self) -> String {
        format!("{} of samples {:?}", self.sampler.fingerprint(), self.samples)
    }

    fn part(&self, _dataset_len: usize, part: Range<usize>) -> Option<Arc<dyn Sampler>> {
        let sampler = self.sampler.part(self.samples.len(), part)?;
        Some(Arc::new(Self { sampler, samples: self.samples.clone() }))
    }
}
