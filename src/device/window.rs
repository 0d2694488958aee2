//! Limits how many batches the device may hold.

use crate::{observe::BatchMemory, sync::locks::Mutex};
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

/// A batch that asks for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Its epoch. No other epoch in progress has this number.
    pub(crate) epoch: u64,
    /// Its number in the epoch.
    pub(crate) number: usize,
}

impl Turn {
    /// Whether this batch is needed before another one. Nothing is known of batches of different epochs.
    fn is_before(self, other: Self) -> bool {
        self.epoch == other.epoch && self.number < other.number
    }
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
/// once `PAUSES` batches in a row were let in without a release.
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
    state: Mutex<WindowState>,
}

#[derive(derive_more::Debug)]
#[debug("WindowState {{ in_use: {}, copying: {copying}, interval: {interval:?}, .. }}", in_use.len())]
struct WindowState {
    /// Batches that may be in use, each with its bytes.
    in_use: Vec<(InUse, usize)>,
    /// Batches that are being copied.
    copying: usize,
    /// Batches that found no room, and wait.
    waiting: Vec<Turn>,
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

impl WindowState {
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
        let state = WindowState {
            in_use: Vec::new(),
            copying: 0,
            waiting: Vec::new(),
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

    /// Waits until one more batch may go to the device, with `epochs` epochs in progress. Of the waiting batches of an
    /// epoch, the one that is needed first goes first. `starved` says how long a consumer has waited for a batch, or
    /// `None` once no consumer waits for it.
    ///
    /// Returns whether it found room. [`copied`](Self::copied) must follow. Returns `None` if the batch is not to be
    /// sent any more.
    pub(crate) fn enter(&self, epochs: usize, turn: Turn, starved: impl Fn() -> Option<Duration>) -> Option<Room> {
        let mut waiting = None;
        let mut hurried = (0, Duration::ZERO);
        let mut room = Room::Free;
        loop {
            let starved = starved()?;
            (self.look)(starved >= LOOK);
            let mut state = self.state.lock();
            let count = state.count();
            let limit = (self.limit + state.queued()).saturating_mul(epochs.max(1));
            let beyond = count.checked_sub(limit);
            // An earlier batch looks again soon. If this one took its room, the consumer would wait for the earlier one.
            let is_next = !state.waiting.iter().any(|other| other.is_before(turn));
            match beyond {
                None if is_next => state.found_room(),
                Some(beyond) if is_next && starved.min(state.last.elapsed()) > state.patience(beyond) => {
                    state.let_in(beyond);
                    room = Room::LetIn;
                }
                _ => {
                    if waiting.is_none() {
                        state.waiting.push(turn);
                        waiting = Some(Waiting { window: self, turn });
                    }
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

/// Keeps a batch among those that wait. Its drop takes the lock, so the thread that drops it must not have it.
struct Waiting<'a> {
    window: &'a DeviceWindow,
    turn: Turn,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.window.state.lock().waiting.retain(|turn| *turn != self.turn);
    }
}

impl BatchMemory for DeviceWindow {
    fn bytes(&self, urgent: bool) -> usize {
        (self.look)(urgent);
        self.state.lock().in_use.iter().filter(|(in_use, _)| in_use()).map(|(_, bytes)| bytes).sum()
    }
}

#[cfg(test)]
mod tests;
