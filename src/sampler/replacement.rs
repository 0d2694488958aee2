//! Independent uniform draws.

use super::{
    Sampler,
    draws::{Draws, below},
};
use crate::rng::KeyedRng;
use derive_new::new;

/// Each sample of an epoch is any of the dataset, whatever came before: some come several times, others not at all.
///
/// ```
/// use burn_pinned::{RandomWithReplacementSampler, Sampler};
///
/// let sampler = RandomWithReplacementSampler::new(42).with_size(1000);
/// assert_eq!(sampler.indices(5, 0).count(), 1000);
/// assert!(sampler.indices(5, 0).all(|index| index < 5));
/// ```
///
/// Drawn one at a time: no memory, and skipping to any position takes no time.
#[derive(Debug, Clone, Copy, new)]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct RandomWithReplacementSampler {
    seed: u64,
    #[new(default)]
    size: Option<usize>,
}

impl RandomWithReplacementSampler {
    /// Samples of an epoch. Default: as many as the dataset has.
    pub fn with_size(mut self, size: usize) -> Self {
        self.size = Some(size);
        self
    }
}

impl Sampler for RandomWithReplacementSampler {
    fn len(&self, dataset_len: usize) -> usize {
        self.size.unwrap_or(dataset_len)
    }

    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let rng = KeyedRng::for_order(self.seed, epoch);
        Box::new(Draws::new(rng, self.len(dataset_len), move |random| below(random, dataset_len).0))
    }

    fn repeats(&self) -> bool {
        true
    }
}
