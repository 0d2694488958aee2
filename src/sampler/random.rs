//! Random orders.

use super::Sampler;
use crate::rng::KeyedRng;
use derive_new::new;
use rand::seq::SliceRandom;

/// Every sample once, in a new order each epoch, drawn from (seed, epoch) alone: a global shuffle, so that every pair of
/// samples can meet in a batch. Takes 8 bytes a sample.
#[derive(Debug, Clone, Copy, new)]
pub struct RandomSampler {
    seed: u64,
}

impl Sampler for RandomSampler {
    fn len(&self, dataset_len: usize) -> usize {
        dataset_len
    }

    fn indices(&self, dataset_len: usize, epoch: usize) -> Box<dyn Iterator<Item = usize> + Send> {
        let mut indices: Vec<usize> = (0..dataset_len).collect();
        indices.shuffle(&mut KeyedRng::for_order(self.seed, epoch));
        Box::new(indices.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
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

    /// Over many epochs every item meets every other in a batch; with fixed partitions it would meet a quarter of them.
    #[test]
    fn every_pair_meets() {
        let mut met = HashSet::new();
        for epoch in 0..500 {
            let order: Vec<usize> = RandomSampler::new(7).indices(400, epoch).collect();
            if let Some(batch) = order.chunks(10).find(|batch| batch.contains(&0)) {
                met.extend(batch.iter().copied());
            }
        }
        assert_eq!(met.len(), 400);
    }
}
