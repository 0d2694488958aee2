//! Data sets that say that they have more samples than there is memory for: an order needs no memory for them, or there is an error.

use crate::common::*;
use burn::data::dataset::{Dataset, DatasetError};
use burn_pinned::{
    Error,
    order::{
        BlockShuffle, Blocks, ClassBalancedSampler, LengthBucketSampler, MixPart, MixSampler, RandomSampler,
        RandomWithReplacementSampler, RepeatSampler, Sampler, SequentialSampler, SubsetSampler, WeightedSampler,
        WeightedWithoutReplacementSampler,
    },
};
use std::panic::catch_unwind;

/// The system refuses so much memory, or no number has so many bytes.
const VAST: [usize; 3] = [1 << 46, usize::MAX / 16, 1 << 60];

struct Vast(usize);

impl Dataset<usize> for Vast {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        Ok(index)
    }

    fn len(&self) -> usize {
        self.0
    }
}

#[test]
fn a_list_without_memory_is_an_error() {
    for len in VAST {
        let weights = || (0..len).map(|item| item as f64);
        let errors = [
            WeightedSampler::new(weights(), 1).err(),
            WeightedWithoutReplacementSampler::new(weights(), 1).err(),
            ClassBalancedSampler::new((0..len).map(|item| item % 10), 1).err(),
            LengthBucketSampler::new(0..len, len, 8).err(),
        ];
        for error in errors {
            let error = error.expect("there is no memory");
            assert!(matches!(error, Error::Config { .. }) && error.to_string().contains("no memory"), "{error}");
        }
        let panic = catch_unwind(|| SubsetSampler::new(0..len)).unwrap_err();
        assert!(panic.downcast_ref::<String>().is_some_and(|text| text.contains("no memory")));
    }
}

#[test]
fn an_order_without_a_list_takes_any_length() {
    for len in VAST {
        let random = RandomSampler::new(1);
        let parts = [MixPart::new(len / 2, 1.0, random), MixPart::new(len - len / 2, 3.0, SequentialSampler)];
        let mix = || MixSampler::new(parts.clone(), 1).unwrap();
        let samplers: Vec<Box<dyn Sampler>> = vec![
            Box::new(SequentialSampler),
            Box::new(random),
            Box::new(random.with_size(len / 3)),
            Box::new(random.with_size(len - 7)),
            Box::new(RandomWithReplacementSampler::new(1)),
            Box::new(RepeatSampler::new(random, 3).unwrap()),
            Box::new(mix()),
            Box::new(mix().until_first_exhausted()),
        ];
        for sampler in samplers {
            sampler.check(len).unwrap();
            for epoch in [0, 3] {
                let (mut begin, middle) = (sampler.indices(len, epoch), sampler.len(len) / 2);
                assert!(begin.next().unwrap() < len && begin.nth(middle).unwrap() < len, "{sampler:?}");
            }
        }
        let loader = builder().shuffle(3).build(Vast(len)).unwrap();
        let batch = loader.iter().next().unwrap().unwrap();
        assert_eq!(numbers(&[batch]).len(), 8);

        // A block is shuffled by a list.
        let order = BlockShuffle::new(Blocks::new([(len, 0)]), 1).streams(1);
        let loader = builder().order(order).build(Vast(len)).unwrap();
        let error = loader.iter().next().unwrap().expect_err("there is no memory for a block");
        let error = Error::of(&error).expect("ours");
        assert!(matches!(error, Error::Panicked { message, .. } if message.contains("no memory")), "{error}");
    }
}
