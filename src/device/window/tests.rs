use super::*;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

/// A batch of the one epoch.
fn turn(number: usize) -> Turn {
    Turn { epoch: 0, number }
}

/// The memory of a batch of 10 bytes.
fn memory(uses: impl Fn() -> MemoryUse + Send + 'static) -> Option<(InUse, usize)> {
    Some((Box::new(uses), 10))
}

/// A batch's memory, with a tensor as long as the test's counter says.
fn batch(number: usize, released: &Arc<AtomicUsize>) -> Option<(InUse, usize)> {
    let released = Arc::clone(released);
    memory(move || if released.load(SeqCst) <= number { MemoryUse::Tensor } else { MemoryUse::Nothing })
}

#[test]
fn no_more_batches_than_the_limit_and_each_release_lets_one_in() {
    let (window, released) = (Arc::new(DeviceWindow::new(3, |_| (), || ())), Arc::new(AtomicUsize::new(0)));
    let entered = Arc::new(AtomicUsize::new(0));
    let thread = {
        let (window, released, entered) = (Arc::clone(&window), Arc::clone(&released), Arc::clone(&entered));
        thread::spawn(move || {
            for number in 0..20 {
                assert_ne!(window.enter(turn(0), || 1, || Some(Duration::ZERO)), Some(Room::LetIn), "let in");
                window.copied(batch(number, &released));
                entered.fetch_add(1, SeqCst);
            }
        })
    };
    for done in 0..17 {
        while entered.load(SeqCst) < done + 3 {
            thread::sleep(LOOK);
        }
        thread::sleep(10 * PATIENCE);
        assert_eq!(entered.load(SeqCst), done + 3);
        released.fetch_add(1, SeqCst);
    }
    thread.join().unwrap();
}

#[test]
fn a_consumer_that_keeps_its_batches_is_let_through() {
    let window = DeviceWindow::new(2, |_| (), || ());
    let start = Instant::now();
    for number in 0..50 {
        let room = if number < 2 { Room::Free } else { Room::LetIn };
        assert_eq!(window.enter(turn(0), || 1, || Some(start.elapsed())), Some(room));
        window.copied(memory(|| MemoryUse::Tensor));
    }
    assert_eq!(window.bytes(true), 500);
    assert!(start.elapsed() >= 48 * 2 * PATIENCE, "{:?}", start.elapsed());
}

#[test]
fn short_steps_have_more_of_them() {
    let window = DeviceWindow::new(2, |_| (), || ());
    let released = Arc::new(AtomicUsize::new(0));
    assert_eq!(window.state.lock().queued(), 0, "nothing is known yet");
    for number in 0..40 {
        assert!(window.enter(turn(0), || 1, || Some(Duration::ZERO)).is_some());
        window.copied(batch(number, &released));
        thread::sleep(Duration::from_millis(if number < 30 { 2 } else { 0 }));
        if number == 29 {
            let queued = window.state.lock().queued();
            assert!((1..=4).contains(&queued), "{queued}"); // a sleep may take longer
        }
        released.fetch_add(1, SeqCst);
    }
    assert!(window.state.lock().queued() > 10, "{window:?}");
    thread::sleep(50 * QUEUED_WORK); // the consumer was away
    window.state.lock().count();
    assert!(window.state.lock().queued() > 4, "{window:?}");
}

/// Dropped batches are held back until somebody asks for them.
#[test]
fn a_consumer_that_waits_gets_back_what_was_held_back() {
    let released = Arc::new(AtomicUsize::new(0));
    let dropped = Arc::new(AtomicUsize::new(0));
    let hurry = {
        let (released, dropped) = (Arc::clone(&released), Arc::clone(&dropped));
        move || released.store(dropped.load(SeqCst), SeqCst)
    };
    let window = DeviceWindow::new(2, |_| (), hurry);
    for number in 0..20 {
        let start = Instant::now();
        let room = window.enter(turn(0), || 1, || Some(start.elapsed()));
        assert!(matches!(room, Some(Room::Free | Room::Released)), "let in");
        assert!(number != 2 || room == Some(Room::Released));
        window.copied(batch(number, &released));
        dropped.fetch_add(1, SeqCst);
    }
}

/// Kernels wait in a server's queue until somebody is in a hurry.
#[test]
fn a_consumer_that_waits_has_queued_work_begun() {
    let begun = Arc::new(AtomicBool::new(false));
    let look = {
        let begun = Arc::clone(&begun);
        move |urgent| begun.store(begun.load(SeqCst) || urgent, SeqCst)
    };
    let window = DeviceWindow::new(1, look, || ());
    for _ in 0..20 {
        let start = Instant::now();
        assert_ne!(window.enter(turn(0), || 1, || Some(start.elapsed())), Some(Room::LetIn));
        begun.store(false, SeqCst);
        let begun = Arc::clone(&begun);
        window.copied(memory(move || if begun.load(SeqCst) { MemoryUse::Nothing } else { MemoryUse::Work }));
    }
}

/// A consumer that runs ahead launches steps, and waits. The device will release a batch, however long a step takes.
#[test]
fn no_batch_is_let_in_while_the_device_works() {
    let window = DeviceWindow::new(5, |_| (), || ());
    // When the device will have done its last step.
    let mut done = Instant::now();
    for number in 0..100 {
        let start = Instant::now();
        let room = window.enter(turn(0), || 1, || Some(start.elapsed()));
        assert!(matches!(room, Some(Room::Free | Room::Released)), "batch {number} was let in");
        done = done.max(Instant::now()) + Duration::from_millis(if number < 40 { 1 } else { 20 });
        let until = done;
        window.copied(memory(move || if Instant::now() < until { MemoryUse::Work } else { MemoryUse::Nothing }));
        let most = if number < 90 { 40 } else { 5 + 1 }; // a short step takes longer on a busy machine
        assert!(window.bytes(false) <= 10 * most, "{window:?}");
    }
}

/// A consumer that always keeps three batches is let through beside the work of others, and that work stays below the limit.
#[test]
fn kept_batches_are_no_work() {
    let window = DeviceWindow::new(2, |_| (), || ());
    let kept: Vec<_> = (0..3).map(|_| Arc::new(AtomicBool::new(true))).collect();
    for number in 0..30 {
        let start = Instant::now();
        window.enter(turn(0), || 1, || Some(start.elapsed()));
        assert!(start.elapsed() < 100 * PATIENCE, "{number}: {:?}", start.elapsed());
        let (is_kept, until) = (kept.get(number).cloned(), Instant::now() + 10 * PATIENCE);
        window.copied(memory(move || match &is_kept {
            Some(kept) if kept.load(SeqCst) => MemoryUse::Tensor,
            None if Instant::now() < until => MemoryUse::Work,
            _ => MemoryUse::Nothing,
        }));
        assert!(window.bytes(false) <= 10 * (3 + 2 + window.state.lock().queued()), "{window:?}");
    }
}

/// The work of all batches waits for another device, for which the consumer needs more batches first.
#[test]
fn work_that_does_not_end_is_waited_for_no_longer_than_some_steps() {
    let window = DeviceWindow::new(2, |_| (), || ());
    let start = Instant::now();
    for number in 0..3 {
        let room = window.enter(turn(0), || 1, || Some(start.elapsed()));
        assert_eq!(room, Some(if number < 2 { Room::Free } else { Room::LetIn }));
        window.copied(memory(|| MemoryUse::Work));
    }
    assert!(start.elapsed() >= 500 * PATIENCE && start.elapsed() < 5000 * PATIENCE, "{:?}", start.elapsed());
}

/// Another epoch begins while a batch waits, so there is room for it.
#[test]
fn an_epoch_that_begins_meanwhile_makes_room() {
    let window = DeviceWindow::new(1, |_| (), || ());
    window.enter(turn(0), || 1, || Some(Duration::ZERO));
    window.copied(memory(|| MemoryUse::Work));
    let looks = AtomicUsize::new(0);
    let epochs = || if looks.fetch_add(1, SeqCst) < 5 { 1 } else { 2 };
    assert_eq!(window.enter(turn(1), epochs, || Some(Duration::ZERO)), Some(Room::Released));
}

#[test]
fn closing_ends_the_wait() {
    let window = DeviceWindow::new(1, |_| (), || ());
    assert_eq!(window.enter(turn(0), || 1, || Some(Duration::ZERO)), Some(Room::Free));
    let (start, looks) = (Instant::now(), AtomicUsize::new(0));
    let open = || (looks.fetch_add(1, SeqCst) < 3).then_some(Duration::ZERO);
    assert_eq!(window.enter(turn(0), || 1, open), None, "it is full");
    assert!(start.elapsed() < Duration::from_secs(1));
}

/// Waits until so many batches wait for room.
fn until_waiting(window: &DeviceWindow, batches: usize) {
    while window.state.lock().waiting.len() != batches {
        thread::sleep(LOOK);
    }
}

/// Threads look again in any order.
#[test]
fn room_goes_to_the_waiting_batch_that_is_needed_first() {
    for _ in 0..10 {
        let (window, released) = (DeviceWindow::new(1, |_| (), || ()), Arc::new(AtomicUsize::new(0)));
        assert_eq!(window.enter(turn(0), || 1, || Some(Duration::ZERO)), Some(Room::Free));
        window.copied(batch(0, &released));
        let entered = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for number in [4, 2, 3, 1] {
                let (window, released, entered) = (&window, &released, &entered);
                scope.spawn(move || {
                    assert_eq!(window.enter(turn(number), || 1, || Some(Duration::ZERO)), Some(Room::Released));
                    let mut entered = entered.lock();
                    entered.push(number);
                    window.copied(batch(entered.len(), released));
                });
            }
            until_waiting(&window, 4);
            for done in 1..=4 {
                released.store(done, SeqCst);
                while entered.lock().len() < done {
                    thread::sleep(LOOK);
                }
            }
        });
        assert_eq!(*entered.lock(), [1, 2, 3, 4]);
        assert!(window.state.lock().waiting.is_empty());
    }
}

#[test]
fn a_batch_that_waits_holds_up_no_other_epoch_and_its_own_for_as_long_as_it_is_wanted() {
    let (window, released) = (DeviceWindow::new(1, |_| (), || ()), Arc::new(AtomicUsize::new(0)));
    window.enter(turn(0), || 1, || Some(Duration::ZERO));
    window.copied(batch(0, &released));
    let (looks, is_unwanted, start) = (AtomicUsize::new(0), AtomicBool::new(false), Instant::now());
    let runs = || start.elapsed() < Duration::from_secs(10); // ends a test that has failed
    thread::scope(|scope| {
        scope.spawn(|| {
            // It finds no room, and then looks no more.
            let starved = || {
                while looks.load(SeqCst) > 0 && !is_unwanted.load(SeqCst) && runs() {
                    thread::sleep(LOOK);
                }
                (looks.fetch_add(1, SeqCst) == 0).then_some(Duration::ZERO)
            };
            assert_eq!(window.enter(turn(1), || 1, starved), None);
        });
        until_waiting(&window, 1);
        let later = scope.spawn(|| window.enter(turn(2), || 1, || runs().then_some(Duration::ZERO)));
        until_waiting(&window, 2);
        released.store(1, SeqCst);
        let of_another = Turn { epoch: 1, number: 5 };
        assert_eq!(window.enter(of_another, || 1, || runs().then_some(Duration::ZERO)), Some(Room::Free));
        window.copied(None);
        thread::sleep(20 * LOOK);
        assert!(!later.is_finished(), "an earlier batch of its epoch waits for this room");
        is_unwanted.store(true, SeqCst);
        assert_eq!(later.join().expect("no panic"), Some(Room::Released));
    });
}
