//! A resumed loader gives exactly the batches that were not given before, with any number of workers and of processes.

mod killed;
mod ranks;
mod refused;
mod rest;

use crate::common::{self, Shown};
use burn_pinned::{
    BoxError, KeyedRng, LoaderState, PinnedDataLoader, PinnedDataLoaderBuilder,
    order::{
        ClassBalancedSampler, LengthBucketSampler, LiveWeights, MixPart, MixSampler, PKSampler, RandomSampler,
        RandomWithReplacementSampler, RepeatSampler, SequentialSampler, SubsetSampler, WeightedSampler,
        WeightedWithoutReplacementSampler,
    },
};
use rand::RngExt;

type Builder = PinnedDataLoaderBuilder<usize, Shown>;

/// Changes the number in a way that shows whether its random numbers are the same.
fn jitter(number: usize, rng: &mut KeyedRng) -> Result<usize, BoxError> {
    Ok(number * 1000 + rng.random_range(0..1000))
}

fn saved(state: &LoaderState) -> LoaderState {
    let text = serde_json::to_string(state).unwrap();
    assert!(text.len() < 400, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn shown(loader: &PinnedDataLoader<Shown>) -> Vec<Shown> {
    loader.iter().map(Result::unwrap).collect()
}

const LEN: usize = 101;

/// A kind of order, by name.
type Order = (&'static str, fn() -> Builder);

fn orders() -> Vec<Order> {
    fn plain() -> Builder {
        common::sized(7).augment(jitter).seed(3)
    }
    fn batches() -> Builder {
        common::unsized_().augment(jitter).seed(3)
    }
    fn weights() -> impl Iterator<Item = f64> {
        (0..LEN).map(|at| (at % 5) as f64)
    }
    vec![
        ("in order", plain),
        ("shuffled", || plain().shuffle(5)),
        ("the last full", || plain().shuffle(5).drop_last(true)),
        ("with replacement", || plain().order(RandomWithReplacementSampler::new(5))),
        ("weighted", || plain().order(WeightedSampler::new(weights(), 5).unwrap())),
        ("live weights", || plain().order(LiveWeights::new(weights(), 5).unwrap())),
        ("weighted once", || plain().order(WeightedWithoutReplacementSampler::new(weights(), 5).unwrap())),
        ("subset", || plain().order(SubsetSampler::new((0..LEN).step_by(2)).shuffle(5))),
        ("balanced", || plain().order(ClassBalancedSampler::new((0..LEN).map(|at| at % 3), 5).unwrap())),
        ("repeated", || plain().order(RepeatSampler::new(RandomSampler::new(5), 3).unwrap())),
        ("mixed", || {
            let parts = [MixPart::new(50, 1.0, RandomSampler::new(1)), MixPart::new(51, 3.0, SequentialSampler)];
            plain().order(MixSampler::new(parts, 5).unwrap())
        }),
        ("labels", || batches().order(PKSampler::new((0..LEN).map(|at| at * at % 7), 3, 3, 5).unwrap())),
        ("buckets", || {
            let buckets = LengthBucketSampler::new((0..LEN).map(|at| 1 + at * 7 % 30), 120, 9).unwrap().shuffle(5);
            batches().order(buckets)
        }),
    ]
}
