//! The orders that fixed seeds give, and the texts by which a sampler is known again. Training that is resumed, or
//! repeated to reproduce a result, relies on both. So a change here breaks them for users, and needs an entry in
//! CHANGELOG.md.

use burn_pinned::order::{
    BatchSampler, ClassBalancedSampler, FixedBatchSampler, LengthBucketSampler, LiveWeights, MixPart, MixSampler,
    PKSampler, PackingSampler, RandomSampler, RandomWithReplacementSampler, RepeatSampler, Sampler, SequentialSampler,
    SubsetSampler, WeightedSampler, WeightedWithoutReplacementSampler,
};

/// The text of a sampler and the first indices of its epochs 0 and 1.
#[track_caller]
fn assert_golden(sampler: &dyn Sampler, dataset_len: usize, text: &str, epochs: [&[usize]; 2]) {
    sampler.check(dataset_len).expect("it fits");
    let first = |epoch: usize| -> Vec<usize> { sampler.indices(dataset_len, epoch).take(8).collect() };
    assert_eq!((format!("{sampler:?}").as_str(), [&first(0)[..], &first(1)]), (text, epochs));
}

/// The text of a sampler and the first batches of epoch 1.
#[track_caller]
fn assert_golden_batches(sampler: &dyn BatchSampler, dataset_len: usize, text: &str, batches: &[&[usize]]) {
    sampler.check(dataset_len).expect("it fits");
    let first: Vec<Vec<usize>> = sampler.batches(dataset_len, 1).batches.take(3).collect();
    assert_eq!((format!("{sampler:?}").as_str(), first), (text, batches.iter().map(|batch| batch.to_vec()).collect()));
}

fn weights() -> impl Iterator<Item = f64> {
    (0..100).map(|item| f64::from(item % 7))
}

fn mix() -> MixSampler {
    let parts = [MixPart::new(70, 1.0, RandomSampler::new(1)), MixPart::new(30, 2.5, SequentialSampler)];
    MixSampler::new(parts, 42).unwrap()
}

#[test]
fn uniform() {
    assert_golden(
        &RandomSampler::new(42),
        100,
        "RandomSampler { seed: 42, size: None }",
        [&[86, 23, 81, 62, 3, 68, 58, 11], &[48, 69, 84, 77, 1, 20, 71, 39]],
    );
    assert_golden(
        &RandomSampler::new(42).with_size(5),
        100,
        "RandomSampler { seed: 42, size: Some(5) }",
        [&[86, 23, 81, 62, 3], &[68, 58, 11, 88, 15]],
    );
    // The longest order that is a table, and the shortest that is computed.
    let first = |sampler: RandomSampler, len| sampler.indices(len, 0).take(5).collect::<Vec<_>>();
    assert_eq!(first(RandomSampler::new(1), 4_194_304), [2761860, 1276196, 1371051, 452397, 3600060]);
    assert_eq!(first(RandomSampler::new(1), 4_194_305), [2267071, 1925285, 52501, 2338014, 2923656]);
    assert_eq!(
        first(RandomSampler::new(7), 100_000_000_000),
        [24320948285, 99799477008, 42407779002, 92625143504, 64155037907]
    );
    assert_eq!(
        first(RandomSampler::new(7).with_size(1000), 100_000_000_000),
        [24320948285, 99799477008, 42407779002, 92625143504, 64155037907]
    );
    assert_golden(
        &RandomSampler::new(42).with_size(70),
        100,
        "RandomSampler { seed: 42, size: Some(70) }",
        [&[86, 23, 81, 62, 3, 68, 58, 11], &[48, 69, 84, 5, 1, 20, 71, 39]],
    );
    assert_golden(
        &RandomWithReplacementSampler::new(42),
        100,
        "RandomWithReplacementSampler { seed: 42, size: None }",
        [&[94, 83, 50, 67, 24, 5, 59, 52], &[61, 52, 86, 98, 55, 82, 99, 94]],
    );
}

#[test]
fn chosen() {
    assert_golden(&SequentialSampler, 100, "SequentialSampler", [&[0, 1, 2, 3, 4, 5, 6, 7], &[0, 1, 2, 3, 4, 5, 6, 7]]);
    assert_golden(
        &SubsetSampler::new((0..100).rev().step_by(9)),
        100,
        "SubsetSampler { seed: None, indices: 12 of hash 9f85e04b85cff245 }",
        [&[99, 90, 81, 72, 63, 54, 45, 36], &[99, 90, 81, 72, 63, 54, 45, 36]],
    );
    assert_golden(
        &SubsetSampler::new((0..100).rev().step_by(9)).shuffle(42),
        100,
        "SubsetSampler { seed: Some(42), indices: 12 of hash 9f85e04b85cff245 }",
        [&[18, 9, 90, 99, 72, 63, 27, 0], &[9, 27, 72, 63, 90, 36, 18, 81]],
    );
}

#[test]
fn weighted() {
    assert_golden(
        &WeightedSampler::new(weights(), 42).unwrap(),
        100,
        "WeightedSampler { seed: 42, size: None, weights: 100 of hash e3af6403bd69aff8 }",
        [&[94, 83, 53, 67, 24, 6, 59, 52], &[62, 53, 88, 96, 55, 82, 97, 94]],
    );
    let live = LiveWeights::new(weights(), 42).unwrap();
    assert_golden(
        &live,
        100,
        "LiveWeights { seed: 42, size: None, weights: 100 }",
        [&[24, 12, 79, 95, 53, 34, 88, 81], &[89, 81, 17, 27, 83, 12, 27, 24]],
    );
    let once = WeightedWithoutReplacementSampler::new(weights(), 42).unwrap();
    assert_golden(
        &once,
        100,
        "WeightedWithoutReplacementSampler { seed: 42, size: 85, weights: 100 of hash e3af6403bd69aff8 }",
        [&[74, 76, 54, 44, 94, 24, 27, 31], &[44, 86, 76, 66, 11, 82, 48, 89]],
    );
    assert_golden(
        &once.with_size(5).unwrap(),
        100,
        "WeightedWithoutReplacementSampler { seed: 42, size: 5, weights: 100 of hash e3af6403bd69aff8 }",
        [&[74, 76, 54, 44, 94], &[44, 86, 76, 66, 11]],
    );
}

#[test]
fn balanced() {
    let labels = (0..100).map(|item| if item < 80 { "many" } else { "few" });
    let balanced = ClassBalancedSampler::new(labels, 42).unwrap();
    assert_golden(
        &balanced,
        100,
        "ClassBalancedSampler { seed: 42, size: None, replacement: true, classes: 2, items_and_ends: 102 of hash 3f6aced920c29915 }",
        [&[70, 53, 0, 27, 89, 82, 14, 4], &[18, 4, 59, 78, 8, 51, 78, 71]],
    );
    assert_golden(
        &balanced.without_replacement(),
        100,
        "ClassBalancedSampler { seed: 42, size: None, replacement: false, classes: 2, items_and_ends: 102 of hash 3f6aced920c29915 }",
        [&[96, 29, 81, 49, 79, 97, 62, 83], &[23, 92, 13, 89, 88, 5, 10, 85]],
    );
}

#[test]
fn combined() {
    assert_golden(
        &mix(),
        100,
        "MixSampler { seed: 42, end: Size(None), parts: [MixPart { len: 70, weight: 1.0, sampler: RandomSampler { seed: 1, size: None } }, MixPart { len: 30, weight: 2.5, sampler: SequentialSampler }] }",
        [&[70, 71, 72, 73, 74, 75, 76, 77], &[87, 41, 88, 89, 40, 13, 90, 91]],
    );
    assert_golden(
        &mix().until_first_exhausted(),
        100,
        "MixSampler { seed: 42, end: FirstExhausted, parts: [MixPart { len: 70, weight: 1.0, sampler: RandomSampler { seed: 1, size: None } }, MixPart { len: 30, weight: 2.5, sampler: SequentialSampler }] }",
        [&[70, 44, 71, 72, 42, 73, 74, 75], &[12, 70, 6, 71, 72, 73, 48, 61]],
    );
    let subset = SubsetSampler::new([5, 50, 99]).shuffle(42);
    assert_golden(
        &RepeatSampler::new(subset.clone(), 2).unwrap(),
        100,
        "RepeatSampler { sampler: SubsetSampler { seed: Some(42), indices: 3 of hash 70531890d92aad51 }, times: Some(2) }",
        [&[5, 99, 50, 5, 99, 50], &[50, 5, 99, 50, 99, 5]],
    );
    assert_golden(
        &RepeatSampler::endless(subset),
        100,
        "RepeatSampler { sampler: SubsetSampler { seed: Some(42), indices: 3 of hash 70531890d92aad51 }, times: None }",
        [&[5, 99, 50, 5, 99, 50, 50, 5], &[5, 99, 50, 50, 5, 99, 50, 99]],
    );
}

#[test]
fn batches() {
    let fixed = FixedBatchSampler::new(RandomSampler::new(42), 4).unwrap().drop_last(true);
    assert_golden_batches(
        &fixed,
        100,
        "FixedBatchSampler { sampler: RandomSampler { seed: 42, size: None }, batch_size: 4, drop_last: true }",
        &[&[48, 69, 84, 77], &[1, 20, 71, 39], &[50, 30, 58, 18]],
    );
    let buckets = LengthBucketSampler::new((0..100).map(|item| 5 + item * 37 % 50), 150, 6).unwrap();
    assert_golden_batches(
        &buckets,
        100,
        "LengthBucketSampler { max_tokens: 150, max_batch_size: 6, pool: 500, seed: None, lengths: 100 of hash ad4b9e1a0a3254e5 }",
        &[&[0, 50, 23, 73, 46, 96], &[19, 69, 42, 92, 15, 65], &[38, 88, 11, 61, 34, 84]],
    );
    assert_golden_batches(
        &buckets.shuffle(42),
        100,
        "LengthBucketSampler { max_tokens: 150, max_batch_size: 6, pool: 500, seed: Some(42), lengths: 100 of hash ad4b9e1a0a3254e5 }",
        &[&[76, 26, 49, 99, 72, 22], &[81, 54], &[86, 36, 59]],
    );
    // Few labels of many samples, and many labels of few: a table is made only for few.
    let labels = PKSampler::new((0..1000).map(|item| item % 7 % 4), 2, 3, 42).unwrap();
    assert_golden_batches(
        &labels,
        1000,
        "PKSampler { p: 2, k: 3, seed: 42, labels: 4, items_and_ends: 1004 of hash 10e8d7f873715067 }",
        &[&[952, 333, 711, 377, 457, 965], &[745, 507, 451, 407, 208, 687], &[982, 90, 338, 668, 66, 388]],
    );
    let labels = PKSampler::new((0..1000).map(|item| item % 100), 3, 2, 42).unwrap();
    assert_golden_batches(
        &labels,
        1000,
        "PKSampler { p: 3, k: 2, seed: 42, labels: 100, items_and_ends: 1100 of hash 29d3cf58b20685c3 }",
        &[&[872, 172, 781, 481, 249, 649], &[434, 534, 401, 701, 164, 864], &[270, 570, 861, 361, 947, 347]],
    );
    let lengths: Vec<u32> = (0..100).map(|document| 5 + document * 37 % 50).collect();
    assert_golden_batches(
        &PackingSampler::new(RandomSampler::new(42), lengths, 64, 3).unwrap().window(40),
        100,
        "PackingSampler { Packing { lengths: 100 of hash 4145b6480ca9838e, row_tokens: 64, batch_size: 3, window: 40, too_long: Error }, order: RandomSampler { seed: 42, size: None } }",
        &[&[1, 51, 67, 79, 18], &[8, 20, 94, 48, 84, 19], &[58, 16, 59, 83, 76, 69, 50]],
    );
}
