//! Processes share an epoch, also one that is resumed by another number of them.

use super::{Builder, LEN, jitter, orders, saved, shown};
use crate::common::{Mischief, Numbers, Shown, builder, numbers};
use burn_pinned::{BadSamples, Distributed, Error, PinnedDataLoader, fault::Quota};
use std::sync::Arc;

fn rank(builder: Builder, rank: usize, world: usize, len: usize) -> Arc<PinnedDataLoader<Shown>> {
    builder.distributed(Distributed::new(rank, world).unwrap()).build(Numbers::new(len)).unwrap()
}

#[test]
fn ranks_share_an_epoch_of_any_sampler() {
    for (name, order) in orders() {
        for world in [2, 3, 7] {
            let all = shown(&order().build(Numbers::new(LEN)).unwrap());
            let loaders: Vec<_> = (0..world).map(|at| rank(order(), at, world, LEN)).collect();
            let shares: Vec<Vec<Shown>> = loaders.iter().map(|loader| shown(loader)).collect();
            let batches: Vec<usize> = shares.iter().map(Vec::len).collect();
            assert!(batches.iter().all(|count| *count == batches[0]), "{name}: ranks have the same number of batches");
            assert!(loaders.iter().all(|loader| loader.num_batches() == batches[0]), "{name}");
            let mut expected = numbers(&all);
            let mut given: Vec<i64> = shares.iter().flat_map(|share| numbers(share)).collect();
            given.sort_unstable();
            expected.sort_unstable();
            if name != "the last full" {
                assert!(given.len() >= expected.len(), "{name}");
                let mut rest = given.clone();
                for number in &expected {
                    // A sample that an order repeats is augmented by its place in the order, and so is padding. So
                    // compare the numbers without the augmentation.
                    let at = rest.iter().position(|other| other / 1000 == number / 1000);
                    rest.remove(at.unwrap_or_else(|| panic!("{name}: {number} is in no share of {world}")));
                }
                assert!(rest.len() < world * 9, "{name}: {} given again", rest.len());
            }
        }
    }
}

#[test]
fn a_world_of_another_size_goes_on() {
    let len = 400;
    let order = || builder().shuffle(9).augment(jitter).batch_size(5);
    let mut whole = numbers(&shown(&order().build(Numbers::new(len)).unwrap()));
    whole.sort_unstable();
    for (then, now) in [(4, 3), (1, 4), (3, 1), (2, 2)] {
        let mut given = Vec::new();
        let mut states = Vec::new();
        for at in 0..then {
            let loader = rank(order(), at, then, len);
            given.extend(loader.iter().take(6).flat_map(|shown| shown.unwrap().numbers));
            states.push(saved(&loader.state()));
        }
        assert!(states.iter().all(|state| *state == states[0] && state.position() == 6 * 5 * then));
        let dropped = |at| Distributed::new(at, now).unwrap().drop_uneven();
        let left = len - states[0].position();
        for at in 0..now {
            let loader = order().resume(states[0].clone()).distributed(dropped(at)).build(Numbers::new(len)).unwrap();
            given.extend(loader.iter().flat_map(|shown| shown.unwrap().numbers));
        }
        given.sort_unstable();
        let missing = whole.iter().filter(|number| given.binary_search(number).is_err()).count();
        assert_eq!((given.len(), missing), (len - left % now, left % now), "{then} -> {now}: nothing twice");
    }
}

/// If processes share an epoch, each gives the same number of batches, even if all samples of a batch are skipped.
#[test]
fn a_batch_of_bad_samples_keeps_its_place_among_ranks() {
    for world in [1, 2] {
        let data =
            (0..16).filter(|at| at % world == 0).fold(Numbers::new(64), |data, at| data.with(at, Mischief::Error));
        let skip = BadSamples::Skip(Quota::Count(16));
        let outcomes: Vec<_> = {
            let share = Distributed::new(0, world).unwrap();
            builder().bad_samples(skip).distributed(share).build(data).unwrap().iter().collect()
        };
        if world == 1 {
            assert!(outcomes.len() == 6 && outcomes.iter().all(Result::is_ok), "empty batches are left out");
        } else {
            assert_eq!(outcomes.len(), 4);
            let error = outcomes[0].as_ref().map(|_| ()).unwrap_err();
            assert!(matches!(Error::of(error), Some(Error::AllSkipped { skipped: 8, .. })), "{error}");
        }
    }
}

/// Burn applies the last gradients of an epoch when its progress is complete.
#[test]
fn a_resumed_epoch_is_complete_at_its_last_batch() {
    for (name, order) in orders() {
        for (then, now) in [(1, 1), (1, 2), (3, 2), (2, 1)] {
            for steps in [0, 1, 2] {
                let first = rank(order(), 0, then, LEN);
                first.iter().take(steps).for_each(|batch| drop(batch.unwrap()));
                for at in 0..now {
                    let rest = rank(order().resume(saved(&first.state())), at, now, LEN);
                    let mut iter = rest.iter();
                    let mut completed = Vec::new();
                    while iter.next().is_some() {
                        let progress = iter.progress();
                        assert!(progress.items_processed <= progress.items_total);
                        completed.push(progress.is_completed());
                    }
                    let last = completed.pop().unwrap();
                    assert!(last && !completed.contains(&true), "{name}, {then} to {now} after {steps}: {completed:?}");
                }
            }
        }
    }
}
