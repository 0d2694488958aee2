//! Limits how many batches the device may hold.
//!
//! A waiting thread polls: CubeCL does not notify anyone when a tensor or a kernel releases memory, and Burn's servers may delay a drop.

use crate::{observe::BatchMemory, sync::locks::Mutex};
use std::{
    thread,
    time::{Duration, Instant},
};

/// What uses a batch's memory on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only CUDA's memory is known"))]
pub(crate) enum MemoryUse {
    /// Nothing.
    Nothing,
    /// Work that is queued for the device. It completes without the consumer, unless it waits for another device.
    Work,
    /// A tensor, or work that Burn holds back.
    Tensor,
}

/// Says what uses a batch's memory.
pub(crate) type InUse = Box<dyn Fn() -> MemoryUse + Send>;

/// Whether there was space for a batch on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// There was room.
    Free,
    /// There was no space until a batch was released.
    Released,
    /// There was no space, and no batch was released in time. The batch was let in anyway.
    LetIn,
}

/// A batch that requests space on the device.
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

/// The polling interval of a waiting thread. After a long wait it polls less often.
const LOOK: Duration = Duration::from_micros(100);
/// How long a consumer waits for a release before Burn is flushed. After the same time again, a consumer that keeps its batches gets one
/// more.
const PATIENCE: Duration = Duration::from_millis(2);
/// If steps are short, the device may have this much work queued beyond the ready batches.
const QUEUED_WORK: Duration = Duration::from_millis(10);

/// Limits the batches that are in device memory: being copied, ready, or used by work that the device has not done yet.
/// A training loop launches steps without waiting for them. Without a limit it would take batch after batch, and each
/// would stay in memory until its step has run; see benches/README.md.
///
/// Burn may hold back operations until more arrive, and a consumer may keep its batches. So one more batch is let in if the consumer waits
/// and the batches that device work will release are below the limit. Work may also wait for another device, whose part the consumer has
/// not launched yet. So a batch is also let in if nothing was released for both a second and the time of four steps.
#[derive(derive_more::Debug)]
#[debug("DeviceWindow {{ limit: {limit}, state: {state:?}, .. }}")]
pub(crate) struct DeviceWindow {
    /// Finds out which batches were released. A batch that was just dropped is noticed by a later look: soon if the
    /// argument, `urgent`, is true.
    look: Box<dyn Fn(bool) + Send + Sync>,
    /// Releases batches that the consumer has dropped and Burn still holds back.
    hurry: Box<dyn Fn() + Send + Sync>,
    limit: usize,
    state: Mutex<WindowState>,
}

#[derive(derive_more::Debug)]
#[debug("WindowState {{ in_use: {}, copying: {copying}, .. }}", in_use.len())]
struct WindowState {
    /// Batches that may be in use, each with its bytes.
    in_use: Vec<(InUse, usize)>,
    /// Batches that are being copied.
    copying: usize,
    /// Batches that found no space, and wait.
    waiting: Vec<Turn>,
    /// When a release was last seen.
    released: Instant,
    /// About how long a step takes: the time from one release to the next.
    interval: Duration,
    /// When a release was last seen, or a batch was let in.
    last: Instant,
}

impl WindowState {
    /// Removes batches that are no longer used. Returns how many batches are in device memory, and how many of them the consumer or Burn
    /// keeps there.
    fn count(&mut self) -> (usize, usize) {
        let (before, mut kept) = (self.in_use.len(), 0);
        self.in_use.retain(|(in_use, _)| {
            let now = in_use();
            kept += usize::from(now == MemoryUse::Tensor);
            now != MemoryUse::Nothing
        });
        if let Ok(released @ 1..) = u32::try_from(before - self.in_use.len()) {
            let (mean, time) = (self.interval, self.released.elapsed() / released);
            // A long time counts little: this limit may have caused it, or the consumer was busy elsewhere.
            self.interval = if time < mean { (mean + time) / 2 } else { (15 * mean + time.min(16 * mean)) / 16 };
            self.released = Instant::now();
            self.last = self.released;
        }
        (self.in_use.len() + self.copying, kept)
    }

    /// How many batches beyond the limit keep the device busy for a while.
    fn queued(&self) -> usize {
        let steps = QUEUED_WORK.as_micros() / self.interval.as_micros().max(1);
        steps.min(64) as usize
    }
}

impl DeviceWindow {
    /// Makes a window of `limit` batches. `look` finds out which memory was released, on devices that need polling. Its
    /// argument says whether it is urgent. `hurry` releases batches that the consumer has dropped and Burn still holds
    /// back.
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
            interval: 2 * QUEUED_WORK,
            last: now,
        };
        let (look, hurry) = (Box::new(look), Box::new(hurry));
        Self { look, hurry, limit, state: Mutex::new(state) }
    }

    /// The limit for `epochs` epochs in progress together.
    pub(crate) fn most(&self, epochs: usize) -> usize {
        self.limit.saturating_mul(epochs.max(1))
    }

    /// Waits until one more batch may go to the device. `epochs` returns the number of epochs in progress. Of the waiting batches of an
    /// epoch, the one that is needed first goes first. `starved` returns how long a consumer has waited for a batch, or `None` once the
    /// batch is no longer wanted.
    ///
    /// Returns how it found space. [`copied`](Self::copied) must follow. Returns `None` if the batch should not be sent
    /// any more.
    pub(crate) fn enter(
        &self,
        turn: Turn,
        epochs: impl Fn() -> usize,
        starved: impl Fn() -> Option<Duration>,
    ) -> Option<Room> {
        let (since, mut waiting) = (Instant::now(), None);
        // When to flush Burn next: at growing intervals, because each flush costs its servers time.
        let (mut ask, mut before) = (PATIENCE, Duration::ZERO);
        loop {
            let (starved, epochs) = (starved()?, epochs());
            if starved < before {
                ask = PATIENCE; // the consumer waits for another batch now
            }
            before = starved;
            (self.look)(starved >= LOOK);
            let mut state = self.state.lock();
            let (count, kept) = state.count();
            let limit = (self.limit + state.queued()).saturating_mul(epochs.max(1));
            let is_full = count >= limit;
            // An earlier batch polls again soon. If this one took its space, the consumer would wait for the earlier
            // one.
            let is_next = !state.waiting.iter().any(|other| other.is_before(turn));
            let waited = starved.min(state.last.elapsed());
            let patience = if count - kept < limit { 2 * PATIENCE } else { (4 * state.interval).max(500 * PATIENCE) };
            if is_next && (!is_full || ask > PATIENCE && waited >= patience) {
                state.copying += 1;
                if is_full {
                    state.last = Instant::now();
                }
                return Some(match waiting {
                    _ if is_full => Room::LetIn,
                    Some(_) => Room::Released,
                    None => Room::Free,
                });
            }
            waiting.get_or_insert_with(|| {
                state.waiting.push(turn);
                Waiting { window: self, turn }
            });
            drop(state);
            if waited >= ask {
                (self.hurry)();
                ask *= 2;
            }
            thread::sleep((since.elapsed() / 16).clamp(LOOK, PATIENCE));
        }
    }

    /// Notes that a batch's copy is over. `in_use` tells whether its memory is still in use, and has its bytes.
    pub(crate) fn copied(&self, in_use: Option<(InUse, usize)>) {
        let mut state = self.state.lock();
        state.copying -= 1;
        state.in_use.extend(in_use);
    }
}

/// Keeps a batch in the list of waiting ones. Drop it without holding the lock.
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
        let state = self.state.lock();
        state.in_use.iter().filter(|(in_use, _)| in_use() != MemoryUse::Nothing).map(|(_, bytes)| bytes).sum()
    }
}

#[cfg(test)]
mod tests;
