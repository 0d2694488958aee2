//! A loader with a batch sampler: its slices, and promises that the sampler breaks.

use crate::common::{self, Numbers, numbers};
use burn::data::dataloader::DataLoader;
use burn_pinned::order::{BatchSampler, EpochBatches, LengthBucketSampler};

/// Burn's learners cut a loader into slices of samples, one for each device.
#[test]
fn slices_of_a_batch_sampler_are_of_samples() {
    let lengths = (0..300).map(|at| 1 + at % 7);
    let sampler = LengthBucketSampler::new(lengths, 20, 4).unwrap().shuffle(1);
    let loader = common::unsized_().order(sampler).build(Numbers::new(300)).unwrap();
    let whole = numbers(&common::epoch(&*loader));
    let parts: Vec<_> = [(0, 100), (100, 200), (200, 300)].map(|(start, end)| loader.slice(start, end)).into();
    let counts: Vec<usize> = parts.iter().map(|part| part.num_items()).collect();
    assert_eq!(counts, [100; 3]);
    let delivered: Vec<Vec<i64>> = parts.iter().map(|part| numbers(&common::epoch(&**part))).collect();
    assert!(delivered.iter().all(|part| part.len() > 60), "{delivered:?}");
    let mut all: Vec<i64> = delivered.concat();
    all.sort_unstable();
    assert!(all.iter().copied().eq(0..300) && whole.len() == 300);
}

/// Promises three batches of at most two samples, and breaks both promises.
#[derive(Debug)]
struct Large;

impl BatchSampler for Large {
    fn batches(&self, _: usize, _: usize) -> EpochBatches {
        EpochBatches::new(3, [vec![0, 1], vec![0, 1, 2], vec![]].into_iter())
    }
    fn max_batch_size(&self, _: usize) -> usize {
        2
    }
    fn num_items(&self, _: usize) -> usize {
        5
    }
}

#[test]
fn a_batch_sampler_is_held_to_its_word() {
    let loader = common::unsized_().order(Large).build(Numbers::new(10)).unwrap();
    let outcomes = common::outcomes(&*loader);
    assert_eq!(outcomes[0], Ok(vec![0, 1]));
    assert!(outcomes[1].as_ref().unwrap_err().contains("gave 3 samples, but its `max_batch_size` promised at most 2"));
    assert!(outcomes[2].as_ref().unwrap_err().contains("ended after 2 of the 3"), "{:?}", outcomes[2]);
    for wrong in [common::unsized_().batch_size(3), common::unsized_().shuffle(1), common::unsized_().drop_last(true)] {
        let error = wrong.order(Large).build(Numbers::new(10)).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("has a batch sampler, which decides it") || error.contains("`shuffle` is set too"),
            "{error}"
        );
    }
}
