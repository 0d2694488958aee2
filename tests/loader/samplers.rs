//! Samplers keep their promises: each index comes as often as it should, in the loader too.

use crate::common::*;
use burn::data::dataset::{
    Dataset, InMemDataset,
    transform::{
        ComposedDataset, Mapper, MapperDataset, PartialDataset, SamplerDataset, SamplerDatasetOptions, ShuffledDataset,
    },
};
use burn_pinned::order::{
    ClassBalancedSampler, LiveWeights, MixPart, MixSampler, RandomSampler, RandomWithReplacementSampler, RepeatSampler,
    Sampler, SequentialSampler, SubsetSampler, WeightedSampler, WeightedWithoutReplacementSampler,
};
use proptest::prelude::*;
use std::{collections::HashSet, time::Instant};

/// The numbers of one epoch over a dataset, in the order in which they came.
fn delivered(dataset: impl Dataset<usize> + 'static, sampler: impl Sampler) -> Vec<usize> {
    let loader = builder().order(sampler).build(dataset).unwrap();
    numbers(&epoch(&*loader)).into_iter().map(|number| number as usize).collect()
}

fn sorted(mut numbers: Vec<usize>) -> Vec<usize> {
    numbers.sort_unstable();
    numbers
}

/// 100, 101, and so on: a number is not its index.
fn hundreds(len: usize) -> InMemDataset<usize> {
    InMemDataset::new((100..100 + len).collect())
}

fn shuffled(len: usize) -> Vec<usize> {
    RandomSampler::new(3).indices(len, 0).collect()
}

/// Every sampler over a dataset of `len` items, with its promise that no index comes twice.
fn all_samplers(len: usize, seed: u64) -> Vec<(Box<dyn Sampler>, bool)> {
    let weights: Vec<f64> = (0..len).map(|item| (item % 4) as f64 + 0.5).collect();
    let parts = || {
        let half = len / 2;
        [MixPart::new(half, 1.0, RandomSampler::new(seed)), MixPart::new(len - half, 2.0, SequentialSampler)]
    };
    let mut all: Vec<(Box<dyn Sampler>, bool)> = vec![
        (Box::new(SequentialSampler), true),
        (Box::new(RandomSampler::new(seed)), true),
        (Box::new(RandomSampler::new(seed).with_size(len / 2)), true),
        (Box::new(RandomWithReplacementSampler::new(seed)), false),
        (Box::new(RandomWithReplacementSampler::new(seed).with_size(2 * len)), false),
        (Box::new(WeightedSampler::new(weights.clone(), seed).unwrap()), false),
        (Box::new(LiveWeights::new(weights.clone(), seed).unwrap()), false),
        (Box::new(WeightedWithoutReplacementSampler::new(weights.clone(), seed).unwrap()), true),
        (Box::new(WeightedWithoutReplacementSampler::new(weights, seed).unwrap().with_size(len / 3).unwrap()), true),
        (Box::new(SubsetSampler::new((0..len).step_by(3))), true),
        (Box::new(SubsetSampler::new((0..len).step_by(3)).shuffle(seed)), true),
        (Box::new(ClassBalancedSampler::new((0..len).map(|item| item % 7 % 3), seed).unwrap()), false),
        (
            Box::new(ClassBalancedSampler::new((0..len).map(|item| item % 7 % 3), seed).unwrap().without_replacement()),
            false,
        ),
        (Box::new(RepeatSampler::new(RandomSampler::new(seed), 3).unwrap()), false),
    ];
    if len > 1 {
        all.push((Box::new(MixSampler::new(parts(), seed).unwrap().with_size(3 * len)), false));
        all.push((Box::new(MixSampler::new(parts(), seed).unwrap().until_first_exhausted()), true));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn samplers_keep_their_word(len in 1usize..150, seed: u64, epoch in 0usize..1000, skip in 0usize..200) {
        for (sampler, once) in all_samplers(len, seed) {
            prop_assert!(sampler.check(len).is_ok());
            let order: Vec<usize> = sampler.indices(len, epoch).collect();
            prop_assert_eq!(order.len(), sampler.len(len), "{:?}", sampler);
            prop_assert_eq!(sampler.indices(len, epoch).size_hint(), (order.len(), Some(order.len())), "{:?}", sampler);
            prop_assert!(order.iter().all(|index| *index < len), "{:?}", sampler);
            let distinct: HashSet<_> = order.iter().collect();
            prop_assert!(!once || distinct.len() == order.len(), "{:?}", sampler);
            prop_assert_eq!(once, !sampler.repeats(), "{:?}", sampler);
            prop_assert!(sampler.indices(len, epoch).eq(order.iter().copied()), "the same again");

            // Resuming skips like this.
            let mut skipping = sampler.indices(len, epoch);
            prop_assert_eq!(skipping.nth(skip), order.get(skip).copied(), "{:?}", sampler);
            prop_assert!(skipping.eq(order.into_iter().skip(skip + 1)), "{:?}", sampler);
        }
    }
}

/// The text stands for the order: `resume` compares it.
#[test]
fn equal_debug_texts_mean_equal_orders() {
    let samplers: Vec<(String, Vec<usize>)> = [1, 2, 1]
        .into_iter()
        .flat_map(|seed| all_samplers(1000, seed))
        .map(|(sampler, _)| (format!("{sampler:?}"), sampler.indices(1000, 5).collect()))
        .collect();
    for (text, order) in &samplers {
        assert!(text.len() < 300, "{text}");
        for (other_text, other_order) in &samplers {
            assert_eq!(text == other_text, order == other_order, "{text} and {other_text}");
        }
    }
}

#[test]
fn over_a_mapped_dataset() {
    struct Double;
    impl Mapper<usize, usize> for Double {
        fn map(&self, item: &usize) -> usize {
            2 * item
        }
    }
    let numbers = delivered(MapperDataset::new(hundreds(50), Double), RandomSampler::new(3));
    assert_eq!(numbers, shuffled(50).into_iter().map(|index| 2 * (100 + index)).collect::<Vec<_>>());
}

#[test]
fn over_a_part_of_a_dataset() {
    let numbers = delivered(PartialDataset::new(hundreds(90), 20, 70), SubsetSampler::new([49, 0, 7]));
    assert_eq!(numbers, [169, 120, 127]);
    let sampler = WeightedWithoutReplacementSampler::new((0..50u32).map(|item| f64::from(item % 2)), 3).unwrap();
    let numbers = delivered(PartialDataset::new(hundreds(90), 20, 70), sampler);
    assert_eq!(sorted(numbers), (121..170).step_by(2).collect::<Vec<_>>());
}

#[test]
fn over_a_shuffled_dataset() {
    let dataset = || ShuffledDataset::new(hundreds(60), 11);
    let expected: Vec<usize> = shuffled(60).into_iter().map(|index| dataset().get(index).unwrap()).collect();
    assert_eq!(delivered(dataset(), RandomSampler::new(3)), expected);
    let twice = RepeatSampler::new(SequentialSampler, 2).unwrap();
    let numbers = delivered(dataset(), twice);
    assert_eq!(numbers[..60], numbers[60..]);
    assert_eq!(sorted(numbers[..60].to_vec()), (100..160).collect::<Vec<_>>());
}

/// Burn's sampler draws again at each `get`, whatever the index is. It decides which items come, and this crate's
/// sampler decides how many.
#[test]
fn over_a_dataset_that_samples() {
    let options = SamplerDatasetOptions::default().without_replacement().with_seed(5).with_fixed_size(40);
    let numbers = delivered(SamplerDataset::new(hundreds(40), options), RandomSampler::new(3));
    assert_eq!(sorted(numbers), (100..140).collect::<Vec<_>>());
    let options = SamplerDatasetOptions::default().with_replacement().with_seed(5).with_fixed_size(30);
    let sampler = RandomWithReplacementSampler::new(3).with_size(77);
    let numbers = delivered(SamplerDataset::new(hundreds(40), options), sampler);
    assert_eq!(numbers.len(), 77);
    assert!(numbers.iter().all(|number| (100..140).contains(number)));
}

#[test]
fn over_composed_datasets() {
    let dataset = || ComposedDataset::new(vec![hundreds(30), InMemDataset::new((5000..5010).collect())]);
    let number = |index: usize| if index < 30 { 100 + index } else { 4970 + index };
    let mix = || {
        let parts = [MixPart::new(30, 1.0, RandomSampler::new(1)), MixPart::new(10, 1.0, SequentialSampler)];
        MixSampler::new(parts, 2).unwrap()
    };
    let expected: Vec<usize> = mix().indices(40, 0).map(number).collect();
    assert_eq!(delivered(dataset(), mix()), expected);
    let second: Vec<usize> = expected.into_iter().filter(|number| *number >= 5000).collect();
    assert!(second.iter().enumerate().all(|(at, number)| *number == 5000 + at % 10));

    let numbers = delivered(dataset(), mix().until_first_exhausted());
    assert_eq!(sorted(numbers)[10..], (5000..5010).collect::<Vec<_>>());
    let labels = (0..40).map(|item| item >= 30);
    let sampler = ClassBalancedSampler::new(labels, 4).unwrap().without_replacement();
    let numbers = delivered(dataset(), sampler);
    assert_eq!(numbers.iter().filter(|number| **number >= 5000).count(), 20);
    let sampler = WeightedSampler::new((0..40).map(|item| if item < 30 { 0.0 } else { 1.0 }), 4).unwrap();
    assert!(delivered(dataset(), sampler).iter().all(|number| *number >= 5000));
}

/// This holds for a global shuffle. If only fixed parts of the dataset were shuffled, most pairs would never meet.
///
/// A pair misses all of 500 epochs with probability (1 - 9/399)^500, about 1.1e-5. So 0.9 of the 79800 pairs are
/// expected to miss all of them. With two seeds in five no pair does, and this is one of those seeds.
#[test]
fn every_pair_meets_in_a_batch() {
    const ITEMS: usize = 400;
    let loader = builder().batch_size(10).shuffle(1).num_workers(4).build(Numbers::new(ITEMS)).unwrap();
    let mut met = vec![false; ITEMS * ITEMS];
    for _ in 0..500 {
        for batch in epoch(&*loader) {
            for a in &batch.numbers {
                for b in &batch.numbers {
                    met[*a as usize * ITEMS + *b as usize] = true;
                }
            }
        }
    }
    assert_eq!(met.iter().filter(|met| !**met).count(), 0, "pairs that never met");
}

/// More weights than a 24-bit float can count, with all weight at the end.
#[test]
fn weights_beyond_two_to_the_24_are_drawn() {
    let len = (1 << 24) + 1000;
    let weights = (0..len).map(|item| if item < len - 3 { 0.0f32 } else { 1.0 });
    let sampler = WeightedSampler::new(weights, 5).unwrap().with_size(3000);
    sampler.check(len).unwrap();
    let mut counts = [0; 3];
    for index in sampler.indices(len, 0) {
        counts[index - (len - 3)] += 1;
    }
    assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");

    let once = WeightedWithoutReplacementSampler::new((0..len).map(|item| (item >= len - 3) as u8), 5).unwrap();
    assert_eq!(sorted(once.indices(len, 0).collect()), [len - 3, len - 2, len - 1]);
}

/// Peak memory of this process in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux machine");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
}

/// Figures, not a test: `cargo test --release --test loader samplers -- --ignored --nocapture`.
#[test]
#[ignore = "prints figures"]
fn figures() {
    let (before, start) = (peak(), Instant::now());
    let len = 100_000_000;
    let order = RandomSampler::new(1).indices(len, 0);
    let (took, bytes) = (start.elapsed(), (peak() - before) as f64 / len as f64);
    println!("a shuffle of {len} indices: {took:.2?}, {bytes:.2} bytes an index at the peak");
    drop(order);

    for len in [1000, 1 << 20, (1 << 24) + 1000] {
        let weights: Vec<f64> = (0..len).map(|item| (item * 7919 % 1000) as f64).collect();
        let (start, draws) = (Instant::now(), 10_000_000);
        let sampler = WeightedSampler::new(weights.clone(), 1).unwrap().with_size(draws);
        let table = start.elapsed();
        let start = Instant::now();
        let sum: usize = sampler.indices(len, 0).sum();
        let each = start.elapsed().as_nanos() as f64 / draws as f64;
        println!("{len} weights: table {table:.2?}, a draw {each:.1} ns (mean {})", sum / draws);

        let start = Instant::now();
        let once = WeightedWithoutReplacementSampler::new(weights, 1).unwrap();
        let mut order = once.indices(len, 0);
        order.next();
        let planned = start.elapsed();
        let rest = order.count();
        println!("  without replacement: first index after {planned:.2?}, {rest} more after {:.2?}", start.elapsed());
    }
}
