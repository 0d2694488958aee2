//! Where a loader says it stands, when epochs overlap or have nothing to give.

use crate::common::{self, Mischief, Numbers, builder};
use burn_pinned::Distributed;

/// If two epochs run at once, the state is that of the one that began last.
#[test]
fn the_state_follows_the_newest_epoch() {
    // Five batches of 8. The only worker waits at first: else the first epoch might have all slots before the second begins.
    let numbers = Numbers::new(40).with(0, Mischief::Hang);
    let gate = numbers.gate.clone();
    let loader = builder().num_workers(1).build(numbers).unwrap();
    let (mut old, mut new) = (loader.iter(), loader.iter());
    gate.open();
    assert_eq!((loader.state().epoch(), loader.state().position()), (1, 0));
    for batch in 0..5 {
        new.next().unwrap().unwrap();
        let at = (loader.state().epoch(), loader.state().position());
        assert_eq!(at, if batch < 4 { (1, 8 * (batch + 1)) } else { (2, 0) });
        old.next().unwrap().unwrap();
        assert_eq!((loader.state().epoch(), loader.state().position()), at, "the older epoch changes nothing");
    }
}

/// If nothing of an epoch is left for a process, the epoch is over as soon as it begins.
#[test]
fn an_epoch_without_batches_is_passed() {
    let build = || builder().batch_size(10).drop_last(true);
    let loader = build().build(Numbers::new(100)).unwrap();
    loader.iter().take(9).for_each(|batch| drop(batch.unwrap()));
    let state = loader.state();
    assert_eq!((state.epoch(), state.position()), (0, 90));
    let rank = build().resume(state).distributed(Distributed::new(0, 2).unwrap()).build(Numbers::new(100)).unwrap();
    assert_eq!(rank.iter().count(), 0, "five samples for each process do not fill a batch of ten");
    assert_eq!((rank.state().epoch(), rank.state().position()), (1, 0));
    assert_eq!(rank.iter().count(), 5);
}

/// Burn's learner trains on a copy that it moves to its device.
#[test]
fn epochs_of_copies_count_for_the_loader() {
    let loader = builder().build(Numbers::new(40)).unwrap();
    let whole = builder().devices(2).build(Numbers::new(40)).unwrap();
    let moved = loader.to_device(&common::device());
    let slices = [whole.slice(0, 20), whole.slice(20, 40)].map(|slice| slice.to_device(&common::device()));
    for _ in 0..3 {
        assert_eq!(moved.iter().count(), 5);
        slices.iter().for_each(|slice| assert_eq!(slice.iter().count(), 3));
    }
    for loader in [&loader, &whole] {
        assert_eq!((loader.state().epoch(), loader.state().position()), (3, 0));
        let mut next = loader.iter();
        next.next().unwrap().unwrap();
        assert_eq!((loader.state().epoch(), loader.state().position()), (3, 8), "not epoch 0 again");
    }
    let part = loader.slice(0, 16);
    assert_eq!(part.iter().count(), 2);
    assert_eq!(loader.state().epoch(), 3, "a part of the data is no epoch of the loader");
}

/// A loop that goes on without an epoch's end in sight lets each iterator end at its last batch.
#[test]
fn an_iterator_that_has_ended_holds_nothing() {
    let loader = builder().num_workers(1).build(Numbers::new(16)).unwrap();
    let mut epochs: Vec<_> = (0..3).map(|_| loader.iter()).collect();
    for epoch in &mut epochs {
        epoch.by_ref().for_each(|batch| drop(batch.unwrap()));
        assert!(epoch.next().is_none() && epoch.progress().is_completed());
    }
    assert_eq!(loader.stats().epochs, 3);
    let gate = {
        let data = Numbers::new(16).with(9, Mischief::Hang);
        let gate = data.gate.clone();
        let timeout = std::time::Duration::from_millis(300);
        let loader = builder().num_workers(1).timeout(timeout).build(data).unwrap();
        let mut iter = loader.iter();
        assert!(iter.next().unwrap().is_ok() && iter.next().unwrap().is_err() && iter.next().is_none());
        gate.wait_for(1);
        // The old iterator is still there. The next one has new threads all the same.
        let mut next = loader.iter();
        assert!(next.next().unwrap().is_ok(), "a new worker");
        drop(iter);
        gate
    };
    gate.open();
}
