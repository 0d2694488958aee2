//! A shuffle of all samples, and draws with replacement.

use super::{
    base::Sampler,
    members::{Members, seed_of},
};
use crate::{
    fault::Error,
    order::draw::{LazyMap, ShortEpoch, Shuffle, below, draws},
};
use burn_augment::KeyedRng;
use derive_new::new;
use std::{ops::Range, sync::Arc};

/// Every sample once, in a new order each epoch that depends only on (seed, epoch).
///
/// The shuffle is global, so any two samples can be in the same batch.
///
/// ```
/// use burn_pinned::order::{RandomSampler, Sampler};
///
/// let mut order: Vec<_> = RandomSampler::new(42).indices(5, 0).collect();
/// let first_three: Vec<_> = RandomSampler::new(42).with_size(3).indices(5, 0).collect();
/// assert_eq!(first_three, order[..3]);
/// order.sort();
/// assert_eq!(order, [0, 1, 2, 3, 4]);
/// ```
///
/// Up to 4,194,304 samples the order is a table of 4 bytes a sample, by R. Durstenfeld, "Algorithm 235: Random permutation", CACM 7(7), 1964.
/// It is made when an epoch begins, for each device anew. Of more samples nothing is planned: each index is computed from its position, by the
/// cipher of J. Black and P. Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002. So an epoch takes no memory, starts at once, and
/// can be entered at any position. `docs/samplers.md` says what an index costs.
#[derive(Debug, Clone, Copy, new)]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct RandomSampler {
    seed: u64,
    #[new(default)]
    size: Option<usize>,
}

impl RandomSampler {
    /// Ends an epoch after `size` samples. The next epoch continues with samples that have not occurred yet.
    ///
    /// So each pass over the dataset takes several epochs, and after any number of epochs the counts of any two samples
    /// differ by at most one. An epoch has no sample twice. It depends only on (seed, epoch) and the two sizes, also
    /// after a resume.
    ///
    /// ```
    /// use burn_pinned::order::{RandomSampler, Sampler};
    ///
    /// let sampler = RandomSampler::new(42).with_size(4);
    /// let mut three: Vec<_> = (0..3).flat_map(|epoch| sampler.indices(12, epoch)).collect();
    /// three.sort();
    /// assert!(three.into_iter().eq(0..12)); // three epochs have each of the 12 samples once
    /// ```
    ///
    /// `size` may be at most the dataset's length. An index then takes several times as long. Of more than 65,536 samples there is no table,
    /// since an epoch may be short: the order is another one than that of whole epochs. With fewer, tables take up to some MB.
    pub fn with_size(mut self, size: usize) -> Self {
        self.size = Some(size);
        self
    }
}

impl Sampler for RandomSampler {
    fn len(&self, dataset_len: usize) -> usize {
        self.size.unwrap_or(dataset_len).min(dataset_len)
    }

    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        match self.len(dataset_len) {
            size if size < dataset_len => {
                let short = ShortEpoch::new(self.seed, dataset_len, size, epoch);
                Box::new(LazyMap::new(size, move |place| Some(short.index_at(place))))
            }
            _ => Box::new(Shuffle::new(dataset_len, &mut KeyedRng::for_order(self.seed, epoch)).indices()),
        }
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        let Some(size) = self.size.filter(|size| *size > dataset_len) else { return Ok(()) };
        let problem = format!("{size} samples are more than the {dataset_len} of the dataset, and none is drawn twice");
        let advice = "lower it, or use `RepeatSampler` for several passes, or `RandomWithReplacementSampler`";
        Err(Error::config("RandomSampler::with_size", problem, advice))
    }

    fn part(&self, dataset_len: usize, part: Range<usize>) -> Option<Arc<dyn Sampler>> {
        let sampler = Self::new(seed_of(self.seed, part.start));
        (self.len(dataset_len) == dataset_len).then(|| Members::of(sampler, part))
    }
}

/// Draws each sample from the whole dataset, independently of the others: some occur several times, others not at all.
///
/// ```
/// use burn_pinned::order::{RandomWithReplacementSampler, Sampler};
///
/// let sampler = RandomWithReplacementSampler::new(42).with_size(1000);
/// assert_eq!(sampler.indices(5, 0).count(), 1000);
/// assert!(sampler.indices(5, 0).all(|index| index < 5));
/// ```
///
/// Samples are drawn one at a time. They need no memory, and skipping to any position takes no time.
#[derive(Debug, Clone, Copy, new)]
#[must_use = "a sampler orders nothing until a loader has it"]
pub struct RandomWithReplacementSampler {
    seed: u64,
    #[new(default)]
    size: Option<usize>,
}

impl RandomWithReplacementSampler {
    /// Sets the number of samples of an epoch. Default: as many as the dataset has.
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
        Box::new(draws(rng, self.len(dataset_len), move |random| below(random, dataset_len).0))
    }

    fn repeats(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::seq::SliceRandom;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn random_gives_every_index_once(len in 0usize..2000, seed: u64, epoch in 0usize..50) {
            let order: Vec<usize> = RandomSampler::new(seed).indices(len, epoch).collect();
            let again: Vec<usize> = RandomSampler::new(seed).indices(len, epoch).collect();
            prop_assert_eq!(&order, &again);
            prop_assert_eq!(order.len(), len);
            prop_assert_eq!(order.iter().copied().collect::<HashSet<_>>(), (0..len).collect::<HashSet<_>>());
        }
    }

    #[test]
    fn epochs_and_seeds_differ() {
        let order = |seed, epoch| RandomSampler::new(seed).indices(100, epoch).collect::<Vec<_>>();
        let all = [order(1, 0), order(1, 1), order(2, 0), order(2, 1), (0..100).collect()];
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }

    /// With four or eight bytes per index, the order is the same as rand's shuffle of `usize`.
    #[test]
    fn the_order_does_not_depend_on_the_width_of_an_index() {
        let mut wide: Vec<usize> = (0..5000).collect();
        wide.shuffle(&mut KeyedRng::for_order(9, 4));
        assert!(RandomSampler::new(9).indices(5000, 4).eq(wide));
    }

    #[test]
    fn a_size_beyond_the_dataset_is_refused() {
        assert!(RandomSampler::new(1).with_size(10).check(10).is_ok());
        let error = RandomSampler::new(1).with_size(11).check(10).unwrap_err().to_string();
        assert!(error.contains("11 samples are more than") && error.contains("RandomWithReplacement"), "{error}");
    }
}
