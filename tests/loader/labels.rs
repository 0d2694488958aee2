//! Batches of `p` labels with `k` samples of each.

use crate::common::{Numbers, epoch, unsized_};
use burn_pinned::{
    Distributed,
    order::{BatchSampler, PKSampler},
};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Of any labels: one label alone, samples that are fewer than `k`, and more labels than the shuffle has a table for.
    #[test]
    fn a_batch_has_p_labels_and_k_samples_of_each(
        labels in prop_oneof![
            prop::collection::vec(0u8..3, 1..40),
            prop::collection::vec(any::<u8>(), 1..300),
            prop::collection::vec(Just(7u8), 1..5),
        ],
        part in 0.0..1.0, k in 1usize..9, seed: u64, pass in 0usize..1000, skip in 0usize..9,
    ) {
        let len = labels.len();
        let mut sizes = BTreeMap::<u8, usize>::new();
        labels.iter().for_each(|label| *sizes.entry(*label).or_default() += 1);
        let p = 1 + (part * (sizes.len() - 1) as f64) as usize;
        let sampler = PKSampler::new(labels.iter(), p, k, seed).unwrap();
        prop_assert!(sampler.check(len).is_ok() && sampler.check(len + 1).is_err());
        let planned = sampler.batches(len, pass);
        prop_assert_eq!(planned.len, (len / (p * k)).max(1));
        prop_assert_eq!((sampler.max_batch_size(len), sampler.num_items(len)), (p * k, planned.len * p * k));
        let batches: Vec<Vec<usize>> = planned.batches.collect();
        prop_assert_eq!(batches.len(), planned.len);
        prop_assert_eq!(sampler.batches(len, pass).batches.nth(skip), batches.get(skip).cloned());
        for batch in &batches {
            prop_assert_eq!(batch.len(), p * k);
            prop_assert_eq!(batch.iter().map(|item| labels[*item]).collect::<HashSet<_>>().len(), p);
            for group in batch.chunks(k) {
                let label = labels[group[0]];
                prop_assert!(group.iter().all(|item| labels[*item] == label));
                let distinct: HashSet<_> = group.iter().collect();
                prop_assert_eq!(distinct.len(), k.min(sizes[&label]), "samples repeat only if they are too few");
            }
        }
    }
}

/// No label, and no sample of a label, comes again before all others of its round.
#[test]
fn rounds_have_each_label_and_each_sample_once() {
    let labels: Vec<usize> = (0..120).map(|item| item % 6).collect(); // 20 samples of each
    let sampler = PKSampler::new(labels.clone(), 2, 5, 3).unwrap();
    let all: Vec<Vec<usize>> = (0..3).flat_map(|epoch| sampler.batches(120, epoch).batches).collect();
    assert_eq!(all.len(), 36, "three passes over the data");
    for round in all.chunks(3) {
        let of_groups: HashSet<_> = round.iter().flatten().step_by(5).map(|item| labels[*item]).collect();
        assert_eq!(of_groups.len(), 6);
    }
    let passes: Vec<Vec<usize>> = all.chunks(12).map(|pass| pass.concat()).collect();
    assert!(passes.iter().all(|pass| pass.iter().collect::<HashSet<_>>().len() == 120));
    assert_ne!(passes[0], passes[1]);
}

#[test]
fn what_makes_no_batch_is_refused() {
    let error = |labels: &[i32], p, k| PKSampler::new(labels, p, k, 1).unwrap_err().to_string();
    for (p, k) in [(0, 1), (1, 0), (0, 0), (usize::MAX, 2)] {
        assert!(error(&[1, 2], p, k).contains("make no batch"), "{p} {k}");
    }
    assert!(error(&[], 1, 1).contains("no labels"));
    assert!(error(&[5, 5, 6], 3, 1).contains("2 different labels for batches of 3"));
    let error = unsized_().order(PKSampler::new([1, 2], 2, 1, 1).unwrap()).build(Numbers::new(3)).unwrap_err();
    assert!(error.to_string().contains("2 labels for a dataset of 3"), "{error}");
    // More samples than memory are an error of the loader, and no end of the process.
    let vast = unsized_().order(PKSampler::new([1, 2], 2, usize::MAX / 4, 1).unwrap()).build(Numbers::new(2));
    assert!(vast.is_err() || vast.unwrap().iter().next().unwrap().is_err());
}

#[test]
fn two_processes_share_the_batches() {
    let order = || PKSampler::new((0..90).map(|item| item % 9), 3, 2, 5).unwrap();
    let whole: Vec<Vec<usize>> = order().batches(90, 0).batches.collect();
    for rank in [0, 1] {
        let share = Distributed::new(rank, 2).unwrap();
        let loader = unsized_().num_workers(3).order(order()).distributed(share).build(Numbers::new(90)).unwrap();
        let own: Vec<Vec<i64>> = epoch(&*loader).into_iter().map(|batch| batch.numbers).collect();
        let expected = whole.iter().skip(rank).step_by(2);
        let expected: Vec<Vec<i64>> = expected.map(|batch| batch.iter().map(|item| *item as i64).collect()).collect();
        assert_eq!(own[..expected.len()], expected);
    }
}
