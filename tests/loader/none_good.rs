//! An epoch in which no sample was good: it ends with an error, whatever the policy.

use crate::common::*;
use burn::data::{dataloader::DataLoader, dataset::InMemDataset};
use burn_pinned::{
    BadSamples, Error, PinnedDataLoaderBuilder,
    fault::Quota,
    order::{FixedBatchSampler, SequentialSampler, SubsetSampler},
};

fn bad(len: usize, indices: impl IntoIterator<Item = usize>) -> Numbers {
    indices.into_iter().fold(Numbers::new(len), |numbers, at| numbers.with(at, Mischief::Error))
}

const SKIP: [BadSamples; 2] = [BadSamples::Skip(Quota::Share(1.0)), BadSamples::Skip(Quota::Count(100))];

/// The only outcome of an epoch: its error.
fn only_error(loader: &dyn DataLoader<Shown>) -> (usize, usize, usize, String) {
    let mut iter = loader.iter();
    let error = iter.next().expect("an error").unwrap_err();
    assert!(iter.progress().is_completed() && iter.next().is_none(), "the epoch is over");
    let Some(Error::NoGoodSample { epoch, skipped, left_out: 0, first }) = Error::of(&error) else { panic!("{error}") };
    (*epoch, *skipped, first.len(), Error::of(&error).unwrap().to_string())
}

#[test]
fn an_epoch_without_a_good_sample_is_an_error() {
    for policy in SKIP {
        for workers in [1, 4] {
            let loader = builder().num_workers(workers).bad_samples(policy).build(bad(20, 0..20)).unwrap();
            for epoch in 0..2 {
                let (of, skipped, listed, text) = only_error(&*loader);
                assert_eq!((of, skipped, listed), (epoch, 20, 16));
                assert!(text.contains("no sample of epoch") && text.contains("number 0 is bad"), "{text}");
                assert_eq!((loader.state().epoch(), loader.state().position()), (epoch + 1, 0));
            }
            assert_eq!((loader.stats().errors, loader.stats().batches, loader.stats().skipped), (2, 0, 40));
        }
        let batches = FixedBatchSampler::new(SequentialSampler, 7).unwrap();
        let loader = unsized_().order(batches).bad_samples(policy).build(bad(20, 0..20)).unwrap();
        assert_eq!(only_error(&*loader).1, 20);
    }
    let replaced = builder().bad_samples(BadSamples::Replace { tries: 30 }).build(bad(20, 0..20)).unwrap();
    assert!(outcomes(&*replaced).iter().all(Result::is_err), "as before");
}

/// What is on the device knows its bad samples too.
#[test]
fn an_epoch_of_kept_samples_that_are_all_bad_is_an_error() {
    for kept in [false, true] {
        let builder = builder().order(SubsetSampler::new(8..16)).bad_samples(SKIP[0]);
        let data = bad(40, 8..16);
        let loader = if kept { builder.build_kept(data) } else { builder.build(data) }.unwrap();
        assert_eq!(only_error(&*loader).1, 8);
    }
}

#[test]
fn one_good_sample_or_another_error_is_enough() {
    let whole = builder().bad_samples(SKIP[0]).build(bad(40, 1..40)).unwrap();
    assert_eq!(outcomes(&*whole), [Ok(vec![0])]);
    let last = builder().bad_samples(SKIP[0]).build(bad(40, 0..39)).unwrap();
    assert_eq!(outcomes(&*last), [Ok(vec![39])]);
    let quota = builder().bad_samples(BadSamples::Skip(Quota::Count(8))).build(bad(16, 0..16)).unwrap();
    let outcomes = outcomes(&*quota);
    assert!(outcomes.len() == 1 && outcomes[0].as_ref().unwrap_err().contains("only 8 may be skipped"), "{outcomes:?}");
}

/// The good samples of a resumed epoch may have come before.
#[test]
fn the_rest_of_an_epoch_may_be_bad() {
    let build = || builder().bad_samples(SKIP[0]);
    let first = build().build(bad(40, 24..40)).unwrap();
    let mut iter = first.iter();
    iter.next().unwrap().unwrap();
    iter.next().unwrap().unwrap();
    let state = first.state();
    assert_eq!(state.position(), 16);
    let rest = build().resume(state.clone()).build(bad(40, 16..40)).unwrap();
    assert_eq!(outcomes(&*rest), [], "two batches were good before");
    drop(iter);
    let none = build().build(bad(40, 0..40)).unwrap();
    let mut iter = none.iter();
    assert!(iter.next().unwrap().is_err() && iter.next().is_none());
}

/// A loader of a plain data set has no such epoch.
#[test]
fn a_good_epoch_is_not_an_error() {
    let loader = PinnedDataLoaderBuilder::new(Show { width: 13 })
        .batch_size(3)
        .bad_samples(SKIP[0])
        .set_device(device())
        .build(InMemDataset::new(vec![1usize, 2, 3, 4]))
        .unwrap();
    assert_eq!(outcomes(&*loader), [Ok(vec![1, 2, 3]), Ok(vec![4])]);
}
