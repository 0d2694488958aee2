//! Weights that change while a loader draws by them.

use crate::common::{self, Numbers, epoch, eventually, numbers, on_host, outcomes, sized};
use burn::tensor::{DType, Int};
use burn_pinned::{
    Distributed, Error, Field, PinnedDataLoaderBuilder, collate, dataset,
    order::{LiveWeights, Sampler},
};
use std::sync::atomic::Ordering::Relaxed;

const LEN: usize = 50;

fn even(seed: u64) -> LiveWeights {
    LiveWeights::new(vec![1.0; LEN], seed).unwrap()
}

#[test]
fn wrong_weights_are_refused_and_change_nothing() {
    let refused = |weights: &[f64]| LiveWeights::new(weights.iter().copied(), 1).unwrap_err().to_string();
    assert!(refused(&[]).contains("no weights"));
    for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -5e-324, f64::MAX] {
        assert!(refused(&[1.0, wrong]).contains("weight 1 is"), "{wrong}");
        let weights = even(1);
        assert!(weights.set(3, wrong).unwrap_err().to_string().contains("weight 3 is"), "{wrong}");
        assert!(weights.set_many([(0, 7.0), (3, wrong), (4, 7.0)]).is_err());
        assert_eq!(weights.to_vec(), [1.0; LEN]);
    }
    let weights = even(1);
    let error = weights.set_many([(0, 7.0), (LEN, 1.0)]).unwrap_err();
    assert!(matches!(&error, Error::Config { .. }) && error.to_string().contains("no item 50 among 50"), "{error}");
    assert_eq!((weights.get(0), weights.get(LEN), weights.sum()), (Some(1.0), None, 50.0));
    weights.set_many([(2, 3.0f32), (2, 5.0)]).unwrap();
    weights.set_many::<f64>([]).unwrap();
    assert_eq!((weights.get(2), weights.sum()), (Some(5.0), 54.0), "the last one counts");
    assert!(weights.check(LEN).is_ok());
    assert!(weights.check(LEN + 1).unwrap_err().to_string().contains("50 weights for a dataset of 51"));
    // The largest ones that are allowed still have a sum.
    let largest = LiveWeights::new([f64::MAX / 8.0; 4], 1).unwrap();
    assert!(largest.sum().is_finite() && largest.indices(4, 0).all(|index| index < 4));
}

/// The batches that are opened after a change have the new weights, in the same epoch.
#[test]
fn a_change_reaches_the_epoch_that_runs() {
    let weights = even(3).with_size(usize::MAX);
    let loader = sized(10).order(weights.clone()).build(Numbers::new(LEN)).unwrap();
    let mut batches = loader.iter();
    batches.next().unwrap().unwrap();
    weights.set_many((0..LEN).map(|item| (item, if item == 7 { 1.0 } else { 0.0 }))).unwrap();
    let is_new = |batch: &common::Shown| batch.numbers.iter().all(|number| *number == 7);
    let rest: Vec<bool> = batches.take(60).map(|batch| is_new(&batch.unwrap())).collect();
    let first = rest.iter().position(|is_new| *is_new).expect("the weights arrive");
    assert!(rest[first..].iter().all(|is_new| *is_new), "{rest:?}");
}

/// Batches of their number, how far ahead they were opened, and their items.
fn ages() -> PinnedDataLoaderBuilder<usize, (usize, usize, Vec<i64>)> {
    PinnedDataLoaderBuilder::new(collate(
        [Field::new("n", DType::I64, [])],
        |n: &usize, row| Ok(row.put("n", *n as i64)?),
        |mut batch| {
            let items = batch.take::<1, Int>("n")?.into_data().try_to_vec::<i64>()?;
            Ok((batch.number(), batch.ahead(), items))
        },
    ))
    .set_device(common::device())
}

/// After batch `n` only item `n + 1` can be drawn. So the items of a batch say what the loop had taken when the batch was opened.
#[test]
fn a_batch_says_how_far_ahead_it_was_opened() {
    let (prefetch, batch, steps) = (2, 4, 40);
    for workers in [1, 3] {
        let weights = LiveWeights::new((0..=steps).map(|item| f64::from(item == 0)), 3).unwrap();
        let numbers = Numbers::new(41);
        let loader = ages()
            .batch_size(batch)
            .num_workers(workers)
            .prefetch(prefetch)
            .order(weights.clone().with_size(steps as usize * batch))
            .build(numbers.clone())
            .unwrap();
        let mut batches = loader.iter();
        let slots = loader.stats().slots;
        assert!(slots > 1);
        eventually("the slots are full", || numbers.asked.load(Relaxed) >= slots.min(steps as usize) * batch);
        for at in 0..steps as usize {
            let (number, ahead, items) = batches.next().unwrap().unwrap();
            assert_eq!(number, at);
            assert!(ahead < prefetch + slots && ahead <= number, "{ahead} of batch {number}");
            let (oldest, newest) = (items.iter().min().unwrap(), items.iter().max().unwrap());
            assert!((number - ahead).saturating_sub(1) as i64 <= *oldest, "{ahead} ahead of {number}: {items:?}");
            assert!(*newest <= number as i64);
            // These were opened before the loop took the first one.
            assert!(number >= slots || !on_host() || (ahead == number && *newest == 0), "{ahead} of batch {number}");
            weights.set_many([(at, 0.0), (at + 1, 1.0)]).unwrap();
        }
        assert!(batches.next().is_none());
    }
}

#[test]
fn batches_of_kept_data_say_it_too() {
    let loader = ages().batch_size(1).order(even(3).with_size(100)).build_kept(Numbers::new(LEN)).unwrap();
    let ages: Vec<usize> = epoch(&*loader).into_iter().map(|(_, ahead, _)| ahead).collect();
    assert_eq!(ages, (0..100).map(|number| number % 64).collect::<Vec<_>>());
}

#[test]
fn without_a_change_the_number_of_workers_changes_nothing() {
    let order = |workers| {
        let loader = sized(7).num_workers(workers).order(even(5)).build(Numbers::new(LEN)).unwrap();
        [epoch(&*loader), epoch(&*loader)].map(|batches| numbers(&batches))
    };
    let [first, second] = order(1);
    assert_ne!(first, second);
    assert_eq!([order(2), order(5)], [[first.clone(), second.clone()], [first, second]]);
}

/// The position is kept, and the saved weights are given again. The draws go on at the right one.
#[test]
fn a_resume_goes_on_with_the_saved_weights() {
    let changed = even(5);
    changed.set_many((0..LEN).step_by(3).map(|item| (item, 20.0))).unwrap();
    let whole: Vec<i64> = changed.indices(LEN, 0).map(|index| index as i64).collect();
    let loader = sized(4).order(changed.clone()).build(Numbers::new(LEN)).unwrap();
    let before: Vec<_> = loader.iter().take(5).map(Result::unwrap).collect();
    assert_eq!(numbers(&before), whole[..20]);
    let (state, saved) = (loader.state(), serde_json::to_string(&changed.to_vec()).unwrap());

    let again = || LiveWeights::new(serde_json::from_str::<Vec<f64>>(&saved).unwrap(), 5).unwrap();
    let resumed = sized(4).order(again()).resume(state.clone()).build(Numbers::new(LEN)).unwrap();
    assert_eq!(numbers(&epoch(&*resumed)), whole[20..]);
    // Other weights are the same order for a state, and other draws.
    let resumed = sized(4).order(even(5)).resume(state.clone()).build(Numbers::new(LEN)).unwrap();
    assert_eq!(epoch(&*resumed).len(), 8);
    assert!(sized(4).order(even(6)).resume(state).build(Numbers::new(LEN)).is_err(), "another seed");
}

#[test]
fn two_processes_share_the_draws() {
    let mut rest: Vec<i64> = even(5).indices(LEN, 0).map(|index| index as i64).collect();
    for rank in [0, 1] {
        let share = Distributed::new(rank, 2).unwrap();
        let loader = sized(5).order(even(5)).distributed(share).build(Numbers::new(LEN)).unwrap();
        let given = numbers(&epoch(&*loader));
        assert_eq!(given.len(), LEN / 2);
        for number in given {
            rest.remove(rest.iter().position(|other| *other == number).expect("in one share"));
        }
    }
    assert!(rest.is_empty());
}

/// An error in place of the batch, also if it happens while the epoch runs; the next epoch is whole again.
#[test]
fn no_weight_at_all_is_an_error_and_never_a_hang() {
    let weights = LiveWeights::new([0.0; LEN], 5).unwrap();
    let loader = sized(10).order(weights.clone()).build(Numbers::new(LEN)).unwrap();
    let all = outcomes(&*loader);
    assert_eq!(all.len(), 5);
    assert!(all[0].as_ref().unwrap_err().contains("all weights of `LiveWeights` are 0"), "{all:?}");
    assert!(all.iter().all(Result::is_err));
    weights.set(4, 1e-300).unwrap();
    assert!(outcomes(&*loader).into_iter().all(|batch| batch == Ok(vec![4; 10])));

    let endless = weights.clone().with_size(usize::MAX);
    let loader = sized(10).order(endless).build(Numbers::new(LEN)).unwrap();
    let mut batches = loader.iter();
    assert!(batches.next().unwrap().is_ok());
    weights.set(4, 0.0).unwrap();
    let error = batches.by_ref().find_map(Result::err).expect("not endless");
    assert!(error.to_string().contains("are 0"), "{error}");
}

/// A worker may change weights too: the lock is not held while the user's code runs.
#[test]
fn a_dataset_may_change_the_weights() {
    let weights = even(5).with_size(200);
    let own = weights.clone();
    let dataset = dataset((0..LEN).collect::<Vec<_>>(), move |item: &usize| {
        own.set(*item, own.sum() / 100.0)?;
        Ok(*item)
    });
    let loader = sized(10).num_workers(3).order(weights).build(dataset).unwrap();
    assert_eq!(numbers(&epoch(&*loader)).len(), 200);
}
