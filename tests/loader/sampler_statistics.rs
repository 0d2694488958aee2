//! Samplers have the chances that they promise: goodness-of-fit tests with fixed seeds.

use burn_pinned::{
    KeyedRng,
    order::{
        BatchSampler, ClassBalancedSampler, LiveWeights, MixPart, MixSampler, PKSampler, RandomSampler,
        RandomWithReplacementSampler, Sampler, SequentialSampler, SubsetSampler, WeightedSampler,
        WeightedWithoutReplacementSampler,
    },
};
use burn_shards::for_loader::Permutation;
use rand::{Rng, seq::SliceRandom};
use statrs::distribution::{ChiSquared, ContinuousCDF};
use std::collections::BTreeMap;

/// A correct sampler fails one test in a thousand seeds. Seeds are fixed, so a test always passes or always fails.
/// After a change of an order, a seed may be one of those that fail.
const SIGNIFICANCE: f64 = 0.001;

/// Pearson's chi-square test of counts against probabilities (K. Pearson, 1900). What has probability 0 must not
/// happen. All expected counts must be at least 5, so that the distribution is near enough (W. G. Cochran, 1952).
fn assert_fits(counts: &[usize], probabilities: &[f64]) {
    assert_eq!(counts.len(), probabilities.len());
    let total = counts.iter().sum::<usize>() as f64;
    let (mut statistic, mut cells) = (0.0, 0.0);
    for (count, probability) in counts.iter().zip(probabilities) {
        if *probability == 0.0 {
            assert_eq!(*count, 0, "drawn with probability 0");
            continue;
        }
        let expected = total * probability;
        assert!(expected >= 5.0, "too few draws for the test: {expected}");
        statistic += (*count as f64 - expected).powi(2) / expected;
        cells += 1.0;
    }
    let Ok(distribution) = ChiSquared::new(cells - 1.0) else { return }; // one cell: nothing is random
    let p = distribution.sf(statistic);
    assert!(p > SIGNIFICANCE, "chi-square {statistic:.1} of {} degrees, p = {p:.2e}", cells - 1.0);
}

fn assert_uniform(counts: &[usize]) {
    assert_fits(counts, &vec![1.0 / counts.len() as f64; counts.len()]);
}

fn count(len: usize, indices: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut counts = vec![0; len];
    for index in indices {
        counts[index] += 1;
    }
    counts
}

fn in_proportion(weights: &[f64]) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// Checks the test itself: it passes what is fair and fails what is a little unfair.
#[test]
fn the_test_tells_fair_from_unfair() {
    assert_uniform(&[1010, 985, 1005]);
    assert!(std::panic::catch_unwind(|| assert_uniform(&[1200, 900, 900])).is_err());
    assert!(std::panic::catch_unwind(|| assert_fits(&[10, 1], &[1.0, 0.0])).is_err());
}

#[test]
fn a_shuffle_puts_any_item_first_and_an_item_anywhere() {
    let orders: Vec<Vec<usize>> = (0..10_000).map(|epoch| RandomSampler::new(1).indices(50, epoch).collect()).collect();
    for place in [0, 1, 25, 49] {
        assert_uniform(&count(50, orders.iter().map(|order| order[place])));
        let item = place;
        let places = orders.iter().filter_map(|order| order.iter().position(|index| *index == item));
        assert_uniform(&count(50, places));
    }
}

/// All 24 orders of four items are equally likely, and not only the places.
#[test]
fn all_orders_are_as_likely() {
    let subset = SubsetSampler::new([0, 1, 2, 3]).shuffle(2);
    for sampler in [&RandomSampler::new(2) as &dyn Sampler, &subset] {
        let mut counts = BTreeMap::<Vec<usize>, usize>::new();
        for epoch in 0..24_000 {
            *counts.entry(sampler.indices(4, epoch).collect()).or_default() += 1;
        }
        assert_eq!(counts.len(), 24);
        assert_uniform(&counts.into_values().collect::<Vec<_>>());
    }
}

/// One epoch says nothing about the next, and one seed nothing about another.
#[test]
fn epochs_and_seeds_are_independent() {
    let first = |seed, epoch| RandomSampler::new(seed).indices(10, epoch).next().unwrap_or_default();
    let pairs = (0..10_000).map(|epoch| 10 * first(3, epoch) + first(3, epoch + 1));
    assert_uniform(&count(100, pairs));
    let pairs = (0..10_000).map(|seed| 10 * first(seed, 0) + first(seed + 1, 0));
    assert_uniform(&count(100, pairs));
}

#[test]
fn with_replacement_draws_all_alike_and_independently() {
    let order: Vec<_> = RandomWithReplacementSampler::new(4).with_size(200_001).indices(30, 0).collect();
    assert_uniform(&count(30, order.iter().copied()));
    assert_uniform(&count(900, order.windows(2).map(|pair| 30 * pair[0] + pair[1])));
}

#[test]
fn weights_are_followed() {
    let some_are_zero: Vec<f64> = (0..100).map(|item| f64::from(item % 10)).collect();
    let over_a_wide_range: Vec<f64> = (0..12).map(|item| 2f64.powi(-item)).collect();
    let irregular: Vec<f64> = (1..1000).map(|item| 1.0 + (f64::from(item) * 0.7).sin()).map(|x| x + 0.1).collect();
    for weights in [some_are_zero, over_a_wide_range, irregular] {
        let n = weights.len();
        let sampler = WeightedSampler::new(weights.iter().copied(), 5).unwrap().with_size(500_000);
        assert_fits(&count(n, sampler.indices(n, 3)), &in_proportion(&weights));
    }
}

/// Also after many changes, for any number of weights: the tree of their sums has another shape for each.
#[test]
fn live_weights_are_followed_after_changes() {
    for n in [1, 2, 3, 5, 64, 100, 129] {
        let target: Vec<f64> = (0..n).map(|item| ((item * 7 + 1) % 10) as f64).collect();
        let live = LiveWeights::new(vec![0.0; n], 5).unwrap().with_size(100_000);
        for change in 0..20 * n {
            live.set(change * 31 % n, 1e12 / (1.0 + change as f64)).unwrap();
        }
        live.set_many(target.iter().copied().enumerate()).unwrap();
        assert_eq!(live.sum(), target.iter().sum::<f64>(), "whole numbers have exact sums");
        assert_fits(&count(n, live.indices(n, 3)), &in_proportion(&target));
        // A change in the middle of an epoch is for the rest of it.
        let mut order = live.indices(n, 4);
        assert_fits(&count(n, order.by_ref().take(50_000)), &in_proportion(&target));
        let other: Vec<f64> = target.iter().map(|weight| if *weight > 5.0 { 0.0 } else { weight + 0.5 }).collect();
        live.set_many(other.iter().copied().enumerate()).unwrap();
        assert_fits(&count(n, order), &in_proportion(&other));
    }
}

/// Labels of unequal size come alike in batches of `p` labels, and so do the samples of each, on all sides of `k`.
#[test]
fn labels_come_alike_in_batches_of_labels_and_samples() {
    let sizes = [1, 2, 3, 7, 10, 80];
    let labels: Vec<usize> = sizes.iter().enumerate().flat_map(|(label, size)| vec![label; *size]).collect();
    // A round has one batch and leaves two labels out. What is in it is independent of the other rounds.
    let sampler = PKSampler::new(labels.clone(), 4, 3, 9).unwrap();
    let batches: Vec<Vec<usize>> = (0..2000).flat_map(|epoch| sampler.batches(103, epoch).batches).collect();
    let firsts = batches.iter().map(|batch| labels[batch[0]]);
    assert_uniform(&count(6, firsts.clone()));
    let pairs = count(36, firsts.clone().zip(firsts.skip(1)).map(|(one, other)| one * 6 + other));
    assert_uniform(&pairs);
    for (label, size) in sizes.into_iter().enumerate() {
        let first = sizes[..label].iter().sum::<usize>();
        let samples = batches.iter().flat_map(|batch| batch.chunks(3)).filter(|group| labels[group[0]] == label);
        assert_uniform(&count(size, samples.map(|group| group[0] - first)));
    }
}

/// The chance of each sequence of `size` items drawn one after the other, by trying them all.
fn sequences(weights: &[f64], size: usize) -> BTreeMap<Vec<usize>, f64> {
    let mut all = BTreeMap::from([(vec![], 1.0)]);
    for _ in 0..size {
        let mut longer = BTreeMap::new();
        for (sequence, chance) in &all {
            let left: f64 = (0..weights.len()).filter(|item| !sequence.contains(item)).map(|item| weights[item]).sum();
            for item in (0..weights.len()).filter(|item| weights[*item] > 0.0 && !sequence.contains(item)) {
                longer.insert([&sequence[..], &[item]].concat(), chance * weights[item] / left);
            }
        }
        all = longer;
    }
    all
}

/// The order, and with it each item's chance to be drawn at all.
#[test]
fn without_replacement_has_the_chances_of_drawing_one_by_one() {
    let weights = [4.0, 1.0, 0.0, 2.5, 2.0, 0.5];
    for size in 1..=5 {
        let chances = sequences(&weights, size);
        let sampler = WeightedWithoutReplacementSampler::new(weights, 6).unwrap().with_size(size).unwrap();
        let (mut drawn, mut included) = (BTreeMap::<Vec<usize>, usize>::new(), [0; 6]);
        let epochs = 60_000;
        for epoch in 0..epochs {
            let sequence: Vec<usize> = sampler.indices(6, epoch).collect();
            sequence.iter().for_each(|item| included[*item] += 1);
            *drawn.entry(sequence).or_default() += 1;
        }
        assert!(drawn.keys().all(|sequence| chances.contains_key(sequence)));
        let counts: Vec<_> = chances.keys().map(|sequence| drawn.get(sequence).copied().unwrap_or(0)).collect();
        assert_fits(&counts, &chances.values().copied().collect::<Vec<_>>());

        for (item, count) in included.into_iter().enumerate() {
            let inclusion: f64 = chances.iter().filter(|(sequence, _)| sequence.contains(&item)).map(|(_, p)| p).sum();
            if inclusion < 1.0 - 1e-9 {
                assert_fits(&[count, epochs - count], &[inclusion, 1.0 - inclusion]);
            } else {
                assert_eq!(count, epochs);
            }
        }
    }
}

#[test]
fn classes_are_drawn_alike_and_so_are_the_items_of_each() {
    let sizes = [1, 3, 10, 40];
    let labels: Vec<usize> = sizes.iter().enumerate().flat_map(|(class, size)| vec![class; *size]).collect();
    let random = ClassBalancedSampler::new(labels.clone(), 7).unwrap().with_size(100_000);
    let order: Vec<_> = random.indices(54, 1).collect();
    assert_uniform(&count(4, order.iter().map(|item| labels[*item])));
    let chances: Vec<_> = labels.iter().map(|class| 0.25 / sizes[*class] as f64).collect();
    assert_fits(&count(54, order), &chances);

    // In rounds, how often a class comes is fixed. What comes first is random: of the classes, and of the items of the
    // largest class.
    let rounds = random.without_replacement().with_size(4);
    let firsts: Vec<Vec<usize>> = (0..20_000).map(|epoch| rounds.indices(54, epoch).collect()).collect();
    assert_uniform(&count(4, firsts.iter().map(|round| labels[round[0]])));
    assert_uniform(&count(40, firsts.iter().flatten().filter(|item| labels[**item] == 3).map(|item| item - 14)));
}

#[test]
fn datasets_are_mixed_by_weight() {
    let weights = [1.0, 6.0, 0.0, 3.0];
    let mix = || MixSampler::new(weights.map(|weight| MixPart::new(10, weight, SequentialSampler)), 8).unwrap();
    let order: Vec<_> = mix().with_size(100_001).indices(40, 0).map(|index| index / 10).collect();
    assert_fits(&count(4, order.iter().copied()), &in_proportion(&weights));
    let pairs: Vec<f64> = weights.iter().flat_map(|a| weights.map(|b| a * b)).collect();
    assert_fits(&count(16, order.windows(2).map(|pair| 4 * pair[0] + pair[1])), &in_proportion(&pairs));

    // Which dataset comes first, where the numbers of each are fixed: 2, 10 and 5 of 17.
    let first = (0..20_000).filter_map(|epoch| mix().until_first_exhausted().indices(40, epoch).next());
    assert_fits(&count(4, first.map(|index| index / 10)), &in_proportion(&[2.0, 10.0, 0.0, 5.0]));
}

/// Checks that orders of `len` samples are random: places, neighbours, fixed points, epochs that follow each other, and classes in batches.
fn assert_random(len: usize, epochs: usize, order: impl Fn(usize) -> Vec<usize>) {
    const CELLS: usize = 16;
    let cell = |number: usize| number * CELLS / len;
    let orders: Vec<Vec<usize>> = (0..epochs).map(order).collect();
    // Where single samples are, and what is at single places.
    for item in [0, 1, len / 2, len - 1] {
        assert_uniform(&count(CELLS, orders.iter().map(|order| cell(order[item]))));
        let places = orders.iter().filter_map(|order| order.iter().position(|index| *index == item));
        assert_uniform(&count(CELLS, places.map(cell)));
    }
    // Neighbours in the order, and samples at one place in two epochs.
    let pairs = |pairs: &mut dyn Iterator<Item = (usize, usize)>| {
        assert_uniform(&count(CELLS * CELLS, pairs.map(|(a, b)| cell(a) * CELLS + cell(b))));
    };
    pairs(&mut orders.iter().flat_map(|order| order.windows(2)).map(|pair| (pair[0], pair[1])));
    let followed = orders.windows(2).flat_map(|orders| orders[0].iter().copied().zip(orders[1].iter().copied()));
    pairs(&mut followed.clone());
    // Differences of neighbours, which a weak cipher would prefer some of. The first cells are the low bits.
    let differences = orders.iter().flat_map(|order| order.windows(2)).map(|pair| (pair[0] + len - pair[1]) % len);
    assert_uniform(&count(CELLS, differences.clone().map(cell)));
    assert_uniform(&count(CELLS, orders.iter().flatten().step_by(7).map(|index| index % CELLS)));
    // Serial correlation is normal, with a variance of one in as many pairs. Five deviations come once in 1.7 million seeds.
    let (mean, spread) = ((len - 1) as f64 / 2.0, ((len as f64).powi(2) - 1.0) / 12.0);
    for pairs in [
        orders.iter().flat_map(|order| order.windows(2)).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>(),
        followed.collect(),
    ] {
        let covariance: f64 = pairs.iter().map(|(a, b)| (*a as f64 - mean) * (*b as f64 - mean)).sum();
        let deviations = covariance / spread / (pairs.len() as f64).sqrt();
        assert!(deviations.abs() < 5.0, "correlated by {deviations:.1} deviations");
    }
    // One fixed point in each order, on average: Poisson.
    let fixed = orders.iter().map(|order| order.iter().enumerate().filter(|(place, index)| place == *index).count());
    let (fixed, expected) = (fixed.sum::<usize>() as f64, epochs as f64);
    assert!((fixed - expected).abs() < 5.0 * expected.sqrt(), "{fixed} fixed points in {epochs} orders");
    // Ten classes, one after the other in the dataset. Each batch's chi-square has 9 degrees, less the batch's share of the dataset.
    let (batch, classes) = (256, 10);
    let statistic = |batch: &[usize]| {
        let counts = count(classes, batch.iter().map(|index| index * classes / len));
        let expected = batch.len() as f64 / classes as f64;
        counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum::<f64>()
    };
    let statistics: Vec<f64> = orders.iter().flat_map(|order| order.chunks_exact(batch)).map(statistic).collect();
    let (mean, expected) =
        (statistics.iter().sum::<f64>() / statistics.len() as f64, 9.0 * (1.0 - batch as f64 / len as f64));
    let deviation = (18.0 / statistics.len() as f64).sqrt();
    assert!((mean - expected).abs() < 5.0 * deviation, "chi-square of classes in batches: {mean:.3} of {expected:.3}");
}

/// In a mixture each block of 4,096 samples has each dataset in proportion, and no distance between two samples says whether they are of one
/// dataset. The choices of blocks that are 2,584 and 4,181 samples apart are almost the same, before they are shuffled.
#[test]
fn a_mixture_is_even_but_not_periodic() {
    let weights = [1.0, 6.0, 0.01, 3.0, 2.5];
    let mix = MixSampler::new(weights.map(|weight| MixPart::new(10, weight, SequentialSampler)), 8).unwrap();
    let order: Vec<_> = mix.with_size(1 << 19).indices(50, 0).map(|index| index / 10).collect();
    let shares = in_proportion(&weights);
    for block in order.chunks(4096) {
        for (count, share) in count(5, block.iter().copied()).into_iter().zip(&shares) {
            assert!((count as f64 - share * 4096.0).abs() < 4.0, "{count} of {share}");
        }
    }
    let alike: f64 = shares.iter().map(|share| share * share).sum();
    for distance in [1, 2, 3, 5, 55, 610, 987, 2584, 4095, 4096, 4181, 6765, 46_368] {
        let pairs = order.iter().zip(&order[distance..]);
        let same = pairs.filter(|(a, b)| a == b).count();
        let others = order.len() - distance - same;
        assert_fits(&[same, others], &[alike, 1.0 - alike]);
    }
}

/// The computed shuffle of long datasets, and a Fisher-Yates shuffle of the same length by the same tests.
#[test]
fn a_long_shuffle_is_as_random_as_a_table() {
    for len in [65_537, 90_000, 131_072] {
        assert_random(len, 200, |epoch| {
            let mut rng = KeyedRng::for_order(3, epoch);
            let shuffle = Permutation::new(len as u64, || rng.next_u64());
            let indices = (0..len as u64).step_by(8).flat_map(|first| shuffle.eight(first));
            indices.take(len).map(|index| index as usize).collect()
        });
        assert_random(len, 200, |epoch| {
            let mut order: Vec<usize> = (0..len).collect();
            order.shuffle(&mut KeyedRng::for_order(3, epoch));
            order
        });
    }
    let weak = |epoch: usize| (0..65_537).map(|place| (place * 40_503 + epoch * 7919) % 65_537).collect();
    assert!(std::panic::catch_unwind(|| assert_random(65_537, 200, weak)).is_err(), "the tests see nothing");
}
