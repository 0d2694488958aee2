//! A sampler that mixes several datasets in given proportions.

use super::{base::Sampler, repeat::passes};
use crate::{
    fault::Error,
    order::draw::{Choices, Cursor, LazyMap, check_count, checked},
};
use std::sync::Arc;

/// The samples of a period of the choices: more than any training has. Weights are rounded to so many parts.
const LONGEST_PERIOD: f64 = (1u64 << 62) as f64;

/// One dataset of a mixture.
#[derive(Clone, derive_more::Debug)]
pub struct MixPart {
    len: usize,
    weight: f64,
    #[debug("{}", sampler.fingerprint())]
    sampler: Arc<dyn Sampler>,
}

impl MixPart {
    /// Takes the number of items of a dataset, the weight with which it is drawn, and the order within it.
    pub fn new(len: usize, weight: f64, sampler: impl Sampler) -> Self {
        Self { len, weight, sampler: Arc::new(sampler) }
    }

    /// The samples after the first `drawn` ones, pass after pass.
    fn behind(&self, drawn: u128) -> Box<dyn Iterator<Item = usize> + Send> {
        let pass_len = self.sampler.len(self.len).max(1) as u128;
        let (before, first) = ((drawn / pass_len) as usize, (drawn % pass_len) as usize);
        let epoch_of = move |pass| before.wrapping_add(pass);
        Box::new(passes(Arc::clone(&self.sampler), self.len, first..usize::MAX, epoch_of))
    }

    /// The `quota` samples of an epoch: at most one pass, and none twice.
    fn once(&self, epoch: usize, quota: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let epochs = self.sampler.len(self.len).div_ceil(quota.max(1)).max(1);
        let (pass, first) = (epoch / epochs, epoch % epochs * quota);
        Box::new(passes(Arc::clone(&self.sampler), self.len, first..first + quota, move |_| pass))
    }
}

/// Mixes several datasets by weight. The datasets are concatenated into one, as by Burn's `ComposedDataset`.
///
/// Each sample is the next one of the sampler of one of the datasets. When this sampler reaches its end, it starts its next pass. An epoch
/// continues where the previous one ended, so each pass is complete, however short the epochs are.
///
/// The samples come in blocks of 4,096. Each block has every dataset in proportion to its weight, up to a few samples, in random order.
///
/// ```
/// use burn_pinned::order::{MixPart, MixSampler, RandomSampler, Sampler, SequentialSampler};
///
/// // 1000 items of one dataset, then 10 of another, which should be three samples in four.
/// let large = MixPart::new(1000, 1.0, RandomSampler::new(1));
/// let small = MixPart::new(10, 3.0, SequentialSampler);
/// let sampler = MixSampler::new([large, small], 42)?.with_size(4000);
/// let of_small = sampler.indices(1010, 0).filter(|index| *index >= 1000).count();
/// assert!((2800..3200).contains(&of_small));
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// Pass `k` of a dataset is epoch `k` of its sampler. A mix takes as much memory as one pass of each sampler: up to 16 MiB for a
/// shuffle. Which dataset is chosen, and how often it was chosen before, is computed from the position. So skipping to any position of any
/// epoch takes no longer than in the samplers of the datasets.
///
/// Give a mix within a mix a different seed. With the same seed both would use the same random numbers, so their choices would be
/// correlated.
#[derive(Debug, Clone)]
pub struct MixSampler {
    seed: u64,
    end: End,
    parts: Arc<[MixPart]>,
}

/// When an epoch ends.
#[derive(Debug, Clone, Copy)]
enum End {
    /// After this many samples. `None` means the total number of samples of the datasets.
    Size(Option<usize>),
    FirstExhausted,
}

impl MixSampler {
    /// Takes the datasets in the order in which they are concatenated. An epoch has as many samples as all of them
    /// together.
    ///
    /// # Errors
    /// [`Error::Config`] if a weight is NaN, infinite or negative, if all are 0, or if there are no datasets. Also if
    /// the sampler of a dataset with a positive weight has no samples or does not fit the dataset.
    pub fn new(parts: impl IntoIterator<Item = MixPart>, seed: u64) -> Result<Self, Error> {
        let parts: Arc<[MixPart]> = parts.into_iter().collect();
        checked("MixSampler::new", parts.iter().map(|part| part.weight))?;
        for (at, part) in parts.iter().enumerate().filter(|(_, part)| part.weight > 0.0) {
            part.sampler.check(part.len)?;
            if part.sampler.is_empty(part.len) {
                let problem = format!("dataset {at} has no samples to draw");
                return Err(Error::config("MixSampler::new", problem, "leave it out, or let its weight be 0"));
            }
        }
        Ok(Self { seed, end: End::Size(None), parts })
    }

    /// Sets the number of samples of an epoch. The next epoch continues after them.
    pub fn with_size(mut self, size: usize) -> Self {
        self.end = End::Size(Some(size));
        self
    }

    /// Ends an epoch when the first dataset is exhausted, so that no sample is repeated.
    ///
    /// An epoch then has a fixed number of each dataset's samples, in proportion to the weights (rounded) and in random
    /// order. It has all samples of the dataset that ends first, and a part of the others. The next epoch continues
    /// with their next samples. If a pass ends within an epoch, the epoch is filled up with the first samples of the
    /// same pass.
    pub fn until_first_exhausted(mut self) -> Self {
        self.end = End::FirstExhausted;
        self
    }

    /// Returns how many samples of each dataset come in a period of the choices. A period is an epoch, if an epoch ends when the first
    /// dataset is exhausted. Otherwise it is longer than any training.
    fn quotas(&self) -> Vec<u64> {
        let largest = self.parts.iter().map(|part| part.weight).fold(0.0, f64::max);
        // Sums and quotients of the smallest and the largest numbers may be infinite, so such weights are scaled. Other weights are
        // unchanged, so that quotas halfway between two numbers are rounded as without scaling.
        let unit = if (1e-250..1e250).contains(&largest) { 1.0 } else { largest };
        let weight = |part: &MixPart| part.weight / unit;
        let most = |part: &MixPart| part.sampler.len(part.len) as u64;
        let mut per_weight = LONGEST_PERIOD / self.parts.iter().map(weight).sum::<f64>();
        if let End::FirstExhausted = self.end {
            let drawn = self.parts.iter().filter(|part| part.weight > 0.0);
            per_weight = drawn.map(|part| most(part) as f64 / weight(part)).fold(per_weight, f64::min);
        }
        let quota = |part: &MixPart| {
            let share = (per_weight * weight(part)).round() as u64;
            match self.end {
                _ if part.weight == 0.0 => 0,
                End::Size(_) => share.max(1),
                End::FirstExhausted => share.min(most(part)),
            }
        };
        self.parts.iter().map(quota).collect()
    }
}

impl Sampler for MixSampler {
    fn len(&self, dataset_len: usize) -> usize {
        match self.end {
            End::Size(size) => size.unwrap_or(dataset_len),
            End::FirstExhausted => self.quotas().into_iter().sum::<u64>() as usize,
        }
    }

    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let (len, quotas) = (self.len(dataset_len), self.quotas());
        let first = epoch as u128 * len as u128;
        let mut walk = Choices::new(self.seed, &quotas).walk_from(first);
        // For each dataset: its position in the concatenation, its samples, and how many come before this epoch.
        let mut start = 0;
        let parts = self.parts.iter().zip(quotas).zip(walk.chosen());
        let mut streams: Vec<_> = parts
            .map(|((part, quota), before)| {
                let samples = match self.end {
                    End::Size(_) => part.behind(*before),
                    End::FirstExhausted => part.once(epoch, quota as usize),
                };
                start += part.len;
                (start - part.len..start, Cursor::new(samples), *before)
            })
            .collect();
        Box::new(LazyMap::new(len, move |at| {
            walk.go_to(first + at as u128);
            let (place, samples, before) = &mut streams[walk.part()];
            let index = samples.item((walk.chosen()[walk.part()] - *before) as usize)?;
            // An index beyond its own dataset must not become an index of the next dataset. The loader will report it.
            Some(if index < place.len() { place.start + index } else { usize::MAX })
        }))
    }

    fn repeats(&self) -> bool {
        matches!(self.end, End::Size(_)) || self.parts.iter().any(|part| part.sampler.repeats())
    }

    fn left_out(&self, dataset_len: usize) -> usize {
        let never = self.parts.iter().filter(|part| part.weight == 0.0).map(|part| part.len);
        dataset_len.saturating_sub(self.len(dataset_len)).max(never.fold(0, usize::saturating_add))
    }

    fn check(&self, dataset_len: usize) -> Result<(), Error> {
        let len = self.parts.iter().map(|part| part.len).fold(0, usize::saturating_add);
        check_count("MixSampler::new", "items in all parts", len, dataset_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::sampler::{RandomSampler, SequentialSampler};
    use std::collections::HashSet;

    fn parts(weights: [f64; 3]) -> [MixPart; 3] {
        [
            MixPart::new(100, weights[0], RandomSampler::new(7)),
            MixPart::new(20, weights[1], RandomSampler::new(7)),
            MixPart::new(30, weights[2], SequentialSampler),
        ]
    }

    #[test]
    fn each_dataset_goes_through_its_passes() {
        let sampler = MixSampler::new(parts([1.0, 2.0, 0.0]), 7).unwrap().with_size(600);
        let small: Vec<_> =
            (0..3).flat_map(|epoch| sampler.indices(150, epoch)).filter(|index| *index >= 100).collect();
        assert!(small.len() > 1100 && small.iter().all(|index| *index < 120), "a weight of 0 is never drawn");
        let passes: Vec<_> = small.chunks_exact(20).collect();
        assert!(passes.iter().all(|pass| pass.iter().collect::<HashSet<_>>().len() == 20), "each item once a pass");
        assert_eq!(passes.iter().collect::<HashSet<_>>().len(), passes.len(), "no pass is like another");
        assert!(sampler.repeats());
    }

    /// Also with epochs that are much shorter than a pass, and as long as all datasets.
    #[test]
    fn passes_go_on_from_epoch_to_epoch() {
        for size in [Some(40), Some(7), None] {
            let sampler = MixSampler::new(parts([3.0, 0.5, 1.0]), 9).unwrap();
            let sampler = if let Some(size) = size { sampler.with_size(size) } else { sampler };
            let epochs = if size.is_none() { 40 } else { 300 };
            let all: Vec<_> = (0..epochs).flat_map(|epoch| sampler.indices(150, epoch)).collect();
            for (items, pass) in [(0..100, 100), (100..120, 20), (120..150, 30)] {
                let of_part: Vec<_> = all.iter().filter(|index| items.contains(*index)).collect();
                assert!(of_part.len() > 3 * pass, "{size:?}, {items:?}");
                for pass in of_part.chunks_exact(pass) {
                    assert_eq!(pass.iter().collect::<HashSet<_>>().len(), pass.len(), "{size:?}, {items:?}");
                }
            }
            // Another process, which begins in any epoch, in any order.
            let again = MixSampler::new(parts([3.0, 0.5, 1.0]), 9).unwrap();
            let again = if let Some(size) = size { again.with_size(size) } else { again };
            for epoch in [17, 3, 3, 18] {
                let len = sampler.len(150);
                assert!(again.clone().indices(150, epoch).eq(all[epoch * len..(epoch + 1) * len].iter().copied()));
            }
        }
    }

    #[test]
    fn an_epoch_without_an_end_costs_no_count() {
        let sampler = MixSampler::new(parts([1.0, 2.0, 0.0]), 7).unwrap().with_size(usize::MAX);
        let first = |epoch| sampler.indices(150, epoch).take(50).collect::<Vec<_>>();
        assert_eq!(first(3).len(), 50);
        assert_ne!(first(3), first(4));
    }

    #[test]
    fn an_epoch_ends_with_the_first_dataset() {
        let sampler = MixSampler::new(parts([1.0, 1.0, 0.5]), 1).unwrap().until_first_exhausted();
        assert_eq!((sampler.len(150), sampler.repeats()), (50, false));
        for epoch in 0..20 {
            let order: Vec<_> = sampler.indices(150, epoch).collect();
            assert_eq!(order.iter().collect::<HashSet<_>>().len(), 50);
            assert_eq!(order.iter().filter(|index| (100..120).contains(*index)).count(), 20);
            assert_eq!(order.iter().filter(|index| **index >= 120).count(), 10);
            assert!(!order.is_sorted());
        }
    }

    /// The other datasets continue too, and an epoch has no item twice.
    #[test]
    fn short_parts_of_a_dataset_are_all_of_it_at_last() {
        let parts = [MixPart::new(100, 1.0, SequentialSampler), MixPart::new(30, 1.0, RandomSampler::new(5))];
        let sampler = MixSampler::new(parts, 1).unwrap().until_first_exhausted();
        let mut seen = HashSet::new();
        for epoch in 0..4 {
            let order: HashSet<_> = sampler.indices(130, epoch).collect();
            assert_eq!(order.len(), 60);
            seen.extend(order);
        }
        assert_eq!(seen.len(), 130);
        let order = |epoch| sampler.indices(130, epoch).filter(|index| *index < 100).collect::<Vec<_>>();
        assert_eq!(order(3), (90..100).chain(0..20).collect::<Vec<_>>());
        assert_eq!(order(4), (0..30).collect::<Vec<_>>());
    }

    #[test]
    fn quotas_follow_weights_of_any_size() {
        let quotas = |weights| MixSampler::new(parts(weights), 1).unwrap().until_first_exhausted().quotas();
        for unit in [1.0, 1e-300, f64::MIN_POSITIVE / 1024.0, 1e300] {
            assert_eq!(quotas([4.0 * unit, unit, unit / 2.0]), [80, 20, 10], "{unit:e}");
        }
        assert_eq!(quotas([5e-324; 3]), [20, 20, 20]);
        assert_eq!(quotas([f64::MAX; 3]), [20, 20, 20]);
        assert_eq!(quotas([1.0, 5e-324, 0.0]), [100, 0, 0]);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let refused = |parts: Vec<MixPart>| MixSampler::new(parts, 1).unwrap_err().to_string();
        assert!(refused(vec![]).contains("no weights"));
        assert!(refused(parts([1.0, -1.0, 0.0]).to_vec()).contains("weight 1 is -1"));
        assert!(refused(vec![MixPart::new(0, 1.0, SequentialSampler)]).contains("dataset 0 has no samples"));
        assert!(refused(vec![MixPart::new(5, 1.0, RandomSampler::new(1).with_size(6))]).contains("6 samples"));
        assert!(MixSampler::new([MixPart::new(0, 0.0, SequentialSampler), parts([1.0; 3])[0].clone()], 1).is_ok());
        let sampler = MixSampler::new(parts([1.0; 3]), 1).unwrap();
        assert!(sampler.check(151).unwrap_err().to_string().contains("150 items in all parts for a dataset of 151"));
    }

    #[test]
    fn an_index_beyond_its_dataset_is_not_one_of_the_next() {
        #[derive(Debug)]
        struct Beyond;
        impl Sampler for Beyond {
            fn len(&self, _: usize) -> usize {
                1
            }
            fn indices(&self, dataset_len: usize, _: usize) -> Box<dyn Iterator<Item = usize> + Send> {
                Box::new(std::iter::once(dataset_len))
            }
        }
        let parts = [MixPart::new(5, 1.0, Beyond), MixPart::new(5, 0.0, SequentialSampler)];
        assert_eq!(MixSampler::new(parts, 1).unwrap().indices(10, 0).next(), Some(usize::MAX));
    }
}
