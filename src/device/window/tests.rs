use super::*;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

/// A batch of the one epoch.
fn turn(number: usize) -> Turn {
    Turn { epoch: 0, number }
}

/// A batch's memory, in use as long as the test's counter says.
fn batch(number: usize, released: &Arc<AtomicUsize>) -> Option<(InUse, usize)> {
    let released = Arc::clone(released);
    Some((Box::new(move || released.load(SeqCst) <= number), 1))
}

#[test]
fn no_more_batches_than_the_limit_and_each_release_lets_one_in() {
    let (window, released) = (Arc::new(DeviceWindow::new(3, |_| (), || ())), Arc::new(AtomicUsize::new(0)));
    let entered = Arc::new(AtomicUsize::new(0));
    let thread = {
        let (window, released, entered) = (Arc::clone(&window), Arc::clone(&released), Arc::clone(&entered));
        thread::spawn(move || {
            for number in 0..20 {
                assert_ne!(window.enter(1, turn(0), || Some(Duration::ZERO)), Some(Room::LetIn), "let in");
                window.copied(batch(number, &released));
                entered.fetch_add(1, SeqCst);
            }
        })
    };
    for done in 0..17 {
        while entered.load(SeqCst) < done + 3 {
            thread::sleep(LOOK);
        }
        thread::sleep(2 * QUEUED_WORK); // a step so long that nothing need be queued
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
        assert_eq!(window.enter(1, turn(0), || Some(start.elapsed())), Some(room));
        window.copied(Some((Box::new(|| true), 10)));
    }
    assert_eq!(window.bytes(true), 500);
    let waits = PAUSES * PATIENCE;
    assert!(start.elapsed() >= waits && start.elapsed() < 3 * waits, "{:?}", start.elapsed());
}

#[test]
fn one_that_keeps_as_many_again_waits_for_them_no_more() {
    let (window, released) = (DeviceWindow::new(2, |_| (), || ()), Arc::new(AtomicUsize::new(0)));
    let mut times = Vec::new();
    for cycle in 0..4 {
        let start = Instant::now();
        for number in 0..6 {
            window.enter(1, turn(0), || Some(start.elapsed()));
            window.copied(batch(6 * cycle + number, &released));
        }
        times.push(start.elapsed());
        thread::sleep(3 * PATIENCE); // the consumer works on six batches together
        released.fetch_add(6, SeqCst);
    }
    let (first, last) = (times[0], times[3]);
    assert!(first >= 3 * PATIENCE && last < PATIENCE, "{times:?}");
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
        let room = window.enter(1, turn(0), || Some(start.elapsed()));
        assert!(matches!(room, Some(Room::Free | Room::Released)), "let in");
        assert!(number != 2 || room == Some(Room::Released));
        window.copied(batch(number, &released));
        dropped.fetch_add(1, SeqCst);
    }
}

/// A consumer that runs ahead launches steps, and later ones take ten times as long. The limit holds for them too.
#[test]
fn steps_that_become_slower_take_no_more_memory() {
    let window = DeviceWindow::new(5, |_| (), || ());
    // When the device will have done its last step.
    let mut done = Instant::now();
    let mut most = 0;
    for number in 0..250 {
        let start = Instant::now();
        window.enter(1, turn(0), || Some(start.elapsed()));
        let step = Duration::from_millis(if number < 150 { 2 } else { 20 });
        done = done.max(Instant::now()) + step;
        let until = done;
        window.copied(Some((Box::new(move || Instant::now() < until), 1)));
        most = most.max(window.bytes(false));
    }
    assert!(most <= 40, "{most} batches"); // ten, and more on a busy machine
}

#[test]
fn a_pause_of_the_consumer_makes_no_later_wait_long() {
    let (window, released) = (DeviceWindow::new(1, |_| (), || ()), Arc::new(AtomicUsize::new(0)));
    let pause = Duration::from_secs(1);
    for number in 0..20 {
        window.enter(1, turn(0), || Some(Duration::ZERO));
        window.copied(batch(number, &released));
        thread::sleep(if number == 10 { pause } else { Duration::from_millis(2) });
        released.fetch_add(1, SeqCst);
    }
    let start = Instant::now();
    while window.enter(1, turn(0), || Some(start.elapsed())) != Some(Room::LetIn) {
        window.copied(Some((Box::new(|| true), 1)));
    }
    assert!(start.elapsed() < pause / 8, "{:?}", start.elapsed());
}

#[test]
fn closing_ends_the_wait() {
    let window = DeviceWindow::new(1, |_| (), || ());
    assert_eq!(window.enter(1, turn(0), || Some(Duration::ZERO)), Some(Room::Free));
    let (start, looks) = (Instant::now(), AtomicUsize::new(0));
    let open = || (looks.fetch_add(1, SeqCst) < 3).then_some(Duration::ZERO);
    assert_eq!(window.enter(1, turn(0), open), None, "it is full");
    assert!(start.elapsed() < PATIENCE / 2);
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
        assert_eq!(window.enter(1, turn(0), || Some(Duration::ZERO)), Some(Room::Free));
        window.copied(batch(0, &released));
        let entered = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for number in [4, 2, 3, 1] {
                let (window, released, entered) = (&window, &released, &entered);
                scope.spawn(move || {
                    assert_eq!(window.enter(1, turn(number), || Some(Duration::ZERO)), Some(Room::Released));
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
    window.enter(1, turn(0), || Some(Duration::ZERO));
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
            assert_eq!(window.enter(1, turn(1), starved), None);
        });
        until_waiting(&window, 1);
        let later = scope.spawn(|| window.enter(1, turn(2), || runs().then_some(Duration::ZERO)));
        until_waiting(&window, 2);
        released.store(1, SeqCst);
        let of_another = Turn { epoch: 1, number: 5 };
        assert_eq!(window.enter(1, of_another, || runs().then_some(Duration::ZERO)), Some(Room::Free));
        window.copied(None);
        thread::sleep(20 * LOOK);
        assert!(!later.is_finished(), "an earlier batch of its epoch waits for this room");
        is_unwanted.store(true, SeqCst);
        assert_eq!(later.join().expect("no panic"), Some(Room::Released));
    });
}
