//! Where a loader says it stands, when epochs overlap or have nothing to give.

mod common;

use burn::data::dataloader::DataLoader;
use burn_pinned::Distributed;
use common::{Mischief, Numbers, builder};

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
