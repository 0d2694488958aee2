//! A resumed epoch gives the rest of its batches, with their numbers and its quota.

use super::{Builder, LEN, jitter, orders, saved, shown};
use crate::common::{Mischief, Numbers, Shown, builder, numbers};
use burn::tensor::{DType, Device};
use burn_pinned::{
    BadSamples, BoxError, Collate, Error, Field, PinnedDataLoaderBuilder, RawBatch, RowMut,
    fault::Quota,
    order::{RandomSampler, RepeatSampler},
};

#[test]
fn the_rest_of_an_epoch_is_what_was_not_given() {
    for (name, order) in orders() {
        let build = |workers: usize, builder: Builder| builder.num_workers(workers).build(Numbers::new(LEN)).unwrap();
        let whole = build(2, order());
        let epochs: Vec<Vec<Shown>> = (0..3).map(|_| shown(&whole)).collect();
        for stop in [0, 1, epochs[1].len() / 2, epochs[1].len() - 1, epochs[1].len()] {
            let first = build(1, order());
            shown(&first);
            let mut given: Vec<Shown> = first.iter().take(stop).map(Result::unwrap).collect();
            let state = saved(&first.state());
            drop(first);
            let rest = build(5, order().resume(state.clone()));
            assert_eq!(rest.state(), state, "{name}");
            if stop > 0 && stop < epochs[1].len() {
                assert_eq!(state.epoch(), 1, "{name}");
                let mut iter = rest.iter();
                let before = iter.progress().items_processed;
                given.extend(iter.by_ref().map(Result::unwrap));
                assert!(before > 0 && iter.progress().items_processed >= iter.progress().items_total - 30, "{name}");
            } else if stop == 0 {
                given = shown(&rest);
            }
            assert_eq!(given, epochs[1], "{name}, stopped after {stop}");
            assert_eq!(shown(&rest), epochs[2], "{name}: the epoch after it is whole");
        }
    }
}

#[test]
fn a_state_may_be_taken_in_a_resumed_epoch() {
    let build = |builder: Builder| builder.shuffle(1).build(Numbers::new(100)).unwrap();
    let whole = numbers(&shown(&build(builder())));
    let (mut seen, mut state) = (Vec::new(), build(builder()).state());
    while state.epoch() == 0 {
        let loader = build(builder().resume(saved(&state)));
        seen.extend(loader.iter().take(2).flat_map(|shown| shown.unwrap().numbers));
        state = loader.state();
    }
    assert_eq!(seen, whole);
}

/// Batches of a resumed epoch keep their numbers, for `finish` and in errors.
#[test]
fn a_resumed_epoch_counts_on() {
    struct Number;
    impl Collate<usize> for Number {
        type Batch = usize;
        fn layout(&self) -> Vec<Field> {
            vec![Field::new("number", DType::I64, [])]
        }
        fn write(&self, &number: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
            Ok(row.put("number", number as i64)?)
        }
        fn finish(&self, batch: RawBatch) -> Result<usize, BoxError> {
            Ok(batch.number())
        }
    }
    let builder = || PinnedDataLoaderBuilder::new(Number).batch_size(8).num_workers(2).set_device(Device::flex());
    let data = || Numbers::new(80).with(60, Mischief::Error);
    let first = builder().build(data()).unwrap();
    assert_eq!(first.iter().take(4).map(Result::unwrap).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let second = builder().resume(saved(&first.state())).build(data()).unwrap();
    let rest: Vec<_> =
        second.iter().map(|batch| batch.map_err(|error| Error::of(&error).unwrap().place().unwrap().batch)).collect();
    assert_eq!(rest, [Ok(4), Ok(5), Ok(6), Err(7), Ok(8), Ok(9)]);
    assert_eq!(second.iter().filter_map(Result::ok).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 8, 9]);
}

/// A quota counts for the whole epoch, even if the epoch is resumed.
#[test]
fn a_quota_goes_on_where_it_was() {
    let data = || [3, 4, 50].into_iter().fold(Numbers::new(80), |data, at| data.with(at, Mischief::Error));
    let builder = || builder().bad_samples(BadSamples::Skip(Quota::Count(2)));
    let first = builder().build(data()).unwrap();
    first.iter().take(2).for_each(|batch| drop(batch.unwrap()));
    let second = builder().resume(saved(&first.state())).build(data()).unwrap();
    let errors: Vec<_> = second.iter().filter_map(Result::err).collect();
    assert!(
        matches!(errors.iter().map(Error::of).collect::<Vec<_>>()[..], [Some(Error::QuotaExceeded { skipped: 3, .. })]),
        "{errors:?}"
    );
}

/// The state also goes on in an endless epoch.
#[test]
fn an_endless_epoch_is_resumed() {
    let build = |builder: Builder| {
        let sampler = RepeatSampler::endless(RandomSampler::new(4));
        builder.order(sampler).augment(jitter).build(Numbers::new(20)).unwrap()
    };
    let loader = build(builder());
    let whole: Vec<Shown> = loader.iter().take(30).map(Result::unwrap).collect();
    let first = build(builder());
    first.iter().take(11).for_each(|shown| drop(shown.unwrap()));
    let rest = build(builder().num_workers(5).resume(saved(&first.state())));
    assert_eq!(rest.iter().take(19).map(Result::unwrap).collect::<Vec<_>>(), whole[11..]);
    let pass = |range: std::ops::Range<usize>| numbers(&whole)[range].to_vec();
    assert_ne!(pass(0..20), pass(20..40), "another order and other random numbers in each pass");
}

#[test]
fn start_epoch_begins_at_the_order_of_that_epoch() {
    let build = |builder: Builder| builder.shuffle(1).augment(jitter).build(Numbers::new(50)).unwrap();
    let whole = build(builder());
    let epochs: Vec<_> = (0..4).map(|_| shown(&whole)).collect();
    let late = build(builder().start_epoch(2));
    assert_eq!([shown(&late), shown(&late)], epochs[2..]);
    assert_ne!(epochs[2], epochs[3]);
}
