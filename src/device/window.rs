//! Limits how many batches the device may hold.

use crate::{observe::OnDevice, sync::locks::Mutex};
use std::{
    thread,
    time::{Duration, Instant},
};

/// Says whether a batch's memory on the device is still in use: by a tensor, or by work that was launched and is not
/// done.
pub(crate) type InUse = Box<dyn Fn() -> bool + Send>;

/// Whether there was room for a batch when it was to go to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// There was room.
    Free,
    /// There was no room until a batch was released.
    Released,
    /// There was no room, and no batch was released in time. The batch was let in nevertheless.
    LetIn,
}

/// How often a waiting thread looks again.
const LOOK: Duration = Duration::from_micros(100);
/// How often a waiting thread asks for a release while a consumer waits, and how many times. A few times are enough,
/// since a consumer that waits drops nothing more.
const HURRY: Duration = Duration::from_millis(1);
const HURRIES: u32 = 4;
/// Where steps are short, the device may have this much work queued beyond the batches that are ready.
const QUEUED_WORK: Duration = Duration::from_millis(10);
/// How long a consumer waits for a release before it gets one batch more. `PATIENCE` holds at first, and `NO_PATIENCE`
/// once `PAUSES` pauses in a row brought no release.
const PATIENCE: Duration = Duration::from_millis(100);
const NO_PATIENCE: Duration = Duration::from_millis(5);
const PAUSES: u32 = 8;
/// The most that counts of the time to the first release. It comes late, since devices and kernels are made first.
const FIRST_RELEASE: Duration = Duration::from_millis(250);
/// A consumer that once kept a number of batches beyond the limit gets as many again soon. The number is forgotten when
/// this many batches in a row have found room.
const CALM_BATCHES: u32 = 64;

/// Limits the batches that are in device memory: being copied, ready, or used by work that the device has not done yet.
/// A training loop launches steps without waiting for them. Without a limit it would take batch after batch, and each
/// would stay in memory until its step has run; see benches/README.md.
///
/// Burn may hold back operations until more of them come, and a consumer may keep its batches. So one batch more is let
/// in where the consumer waits and nothing is released for a long time.
#[derive(derive_more::Debug)]
#[debug("DeviceWindow {{ limit: {limit}, state: {state:?}, .. }}")]
pub(crate) struct DeviceWindow {
    /// Finds out which batches were released. A batch that was just dropped is found released by a later look: by one
    /// soon after if the argument, `urgent`, is true.
    look: Box<dyn Fn(bool) + Send + Sync>,
    /// Releases batches that the consumer has dropped and Burn still holds back.
    hurry: Box<dyn Fn() + Send + Sync>,
    limit: usize,
    state: Mutex<State>,
}

#[derive(derive_more::Debug)]
#[debug("State {{ in_use: {}, copying: {copying}, interval: {interval:?}, .. }}", in_use.len())]
struct State {
    /// Batches that may be in use, each with its bytes.
    in_use: Vec<(InUse, usize)>,
    /// Batches that are being copied.
    copying: usize,
    /// When a release was last seen.
    released: Instant,
    /// When a release was last seen, or one batch more was let in.
    last: Instant,
    /// The usual time from one release to the next.
    interval: Option<Duration>,
    /// Batches that were let in one after the other without a release.
    pauses: u32,
    /// Batches beyond the limit that the consumer has kept.
    kept: usize,
    /// Batches in a row that found room.
    calm: u32,
}

impl State {
    /// Forgets batches that are not used any more. Returns the number of batches in device memory.
    fn count(&mut self) -> usize {
        let before = self.in_use.len();
        self.in_use.retain(|(in_use, _)| in_use());
        if let Ok(released @ 1..) = u32::try_from(before - self.in_use.len()) {
            let time = self.released.elapsed() / released;
            // A long time counts little: this limit may have caused it, or the consumer was away.
            let grown = |mean: Duration| (15 * mean + time.min(16 * mean)) / 16;
            let mean = |mean: Duration| if time < mean { (mean + time) / 2 } else { grown(mean) };
            self.interval = Some(self.interval.map_or(time.min(FIRST_RELEASE), mean));
            self.released = Instant::now();
            (self.last, self.pauses) = (self.released, 0);
        }
        self.in_use.len() + self.copying
    }

    /// How many batches beyond the limit keep the device busy for a while.
    fn queued(&self) -> usize {
        let steps = |interval: Duration| QUEUED_WORK.as_micros() / interval.as_micros().max(1);
        self.interval.map_or(0, |interval| steps(interval).min(64) as usize)
    }

    /// How long the consumer waits before a batch beyond the limit is let in. `beyond` counts these batches from 0.
    fn patience(&self, beyond: usize) -> Duration {
        match self.interval {
            _ if self.pauses >= PAUSES || beyond < self.kept => NO_PATIENCE,
            Some(interval) => (4 * interval).max(NO_PATIENCE),
            None => PATIENCE,
        }
    }

    /// Notes that a batch beyond the limit is let in. `beyond` counts these batches from 0.
    fn let_in(&mut self, beyond: usize) {
        self.last = Instant::now();
        self.pauses += 1;
        self.kept = self.kept.max(beyond + 1);
        self.calm = 0;
    }

    /// Notes that a batch found room.
    fn found_room(&mut self) {
        self.calm += 1;
        if self.calm >= CALM_BATCHES {
            (self.kept, self.calm) = (0, 0);
        }
    }
}

impl DeviceWindow {
    /// A window of `limit` batches. `look` finds out which memory was released, on devices where somebody must look.
    /// Its argument says whether it is urgent. `hurry` releases batches that the consumer has dropped and Burn still
    /// holds back.
    pub(crate) fn new(
        limit: usize,
        look: impl Fn(bool) + Send + Sync + 'static,
        hurry: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let now = Instant::now();
        let state = State {
            in_use: Vec::new(),
            copying: 0,
            released: now,
            last: now,
            interval: None,
            pauses: 0,
            kept: 0,
            calm: 0,
        };
        let (look, hurry) = (Box::new(look), Box::new(hurry));
        Self { look, hurry, limit, state: Mutex::new(state) }
    }

    /// The limit for `epochs` epochs in progress together.
    pub(crate) fn most(&self, epochs: usize) -> usize {
        self.limit.saturating_mul(epochs.max(1))
    }

    /// Waits until one more batch may go to the device, with `epochs` epochs in progress. `starved` says how long a
    /// consumer has waited for a batch, or `None` once nobody waits for this one.
    ///
    /// Returns whether it found room. [`copied`](Self::copied) must follow. Returns `None` if the batch is not to be
    /// sent any more.
    pub(crate) fn enter(&self, epochs: usize, starved: impl Fn() -> Option<Duration>) -> Option<Room> {
        let mut hurried = (0, Duration::ZERO);
        let mut room = Room::Free;
        loop {
            let starved = starved()?;
            (self.look)(starved >= LOOK);
            let mut state = self.state.lock();
            let count = state.count();
            let limit = (self.limit + state.queued()).saturating_mul(epochs.max(1));
            let beyond = count.checked_sub(limit);
            match beyond {
                None => state.found_room(),
                Some(beyond) if starved.min(state.last.elapsed()) > state.patience(beyond) => {
                    state.let_in(beyond);
                    room = Room::LetIn;
                }
                Some(_) => {
                    drop(state);
                    room = Room::Released;
                    hurried = match hurried {
                        (_, before) if starved < before => (0, Duration::ZERO), // the consumer waits for another batch now
                        (times @ ..HURRIES, before) if starved >= before + HURRY => {
                            (self.hurry)();
                            (times + 1, starved)
                        }
                        as_it_was => as_it_was,
                    };
                    thread::sleep(LOOK);
                    continue;
                }
            }
            state.copying += 1;
            return Some(room);
        }
    }

    /// Notes that a batch's copy is over. `in_use` tells whether its memory is still in use, and has its bytes.
    pub(crate) fn copied(&self, in_use: Option<(InUse, usize)>) {
        let mut state = self.state.lock();
        state.copying -= 1;
        state.in_use.extend(in_use);
    }
}

impl OnDevice for DeviceWindow {
    fn bytes(&self, urgent: bool) -> usize {
        (self.look)(urgent);
        self.state.lock().in_use.iter().filter(|(in_use, _)| in_use()).map(|(_, bytes)| bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    };

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
                    assert_ne!(window.enter(1, || Some(Duration::ZERO)), Some(Room::LetIn), "let in");
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
            assert_eq!(window.enter(1, || Some(start.elapsed())), Some(room));
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
                window.enter(1, || Some(start.elapsed()));
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
            let room = window.enter(1, || Some(start.elapsed()));
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
            window.enter(1, || Some(start.elapsed()));
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
            window.enter(1, || Some(Duration::ZERO));
            window.copied(batch(number, &released));
            thread::sleep(if number == 10 { pause } else { Duration::from_millis(2) });
            released.fetch_add(1, SeqCst);
        }
        let start = Instant::now();
        while window.enter(1, || Some(start.elapsed())) != Some(Room::LetIn) {
            window.copied(Some((Box::new(|| true), 1)));
        }
        assert!(start.elapsed() < pause / 8, "{:?}", start.elapsed());
    }

    #[test]
    fn closing_ends_the_wait() {
        let window = DeviceWindow::new(1, |_| (), || ());
        assert_eq!(window.enter(1, || Some(Duration::ZERO)), Some(Room::Free));
        let (start, looks) = (Instant::now(), AtomicUsize::new(0));
        let open = || (looks.fetch_add(1, SeqCst) < 3).then_some(Duration::ZERO);
        assert_eq!(window.enter(1, open), None, "it is full");
        assert!(start.elapsed() < PATIENCE / 2);
    }
}
