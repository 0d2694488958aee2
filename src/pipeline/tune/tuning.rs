//! Chooses the numbers of workers and of batches ahead while a training runs.

use super::tuner::{Seen, Tuner};
use parking_lot::Mutex;
use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Lets the loader choose: `num_workers(Auto)`, `prefetch(Auto)`.
///
/// The loader starts with two batches ahead, and with one worker for each thread of the machine but one. With fewer
/// than eight threads, it starts with one worker for each thread.
///
/// It looks at the training loop every 0.4 s or every 16 batches, whichever takes longer. Several short epochs may count
/// together. If the loop takes its batches in bursts, and then waits for the device, a look has whole bursts. The loader
/// sees what the loop got, and how long it waited. A wait for room on the device does not count: no worker can shorten it.
///
/// Then the loader tries a change, and keeps it or takes it back. It logs what it does and why (`log`, level info), and
/// what it sees (level debug). Trials cost some of the first hundred batches, and less and less later.
///
/// All copies of a loader (`to_device`, `slice`) share what is chosen.
///
/// - Workers: the fewest that give the loop the best rate, so that the other cores are left to the training. There are
///   never more than at the start.
/// - Batches ahead: up to 8, within `pinned_limit`, if more of them make the loop wait less. That is so with samples
///   that take very different times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Auto;

/// A fixed number, or [`Auto`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// This many.
    Fixed(usize),
    /// The loader chooses.
    Auto,
}

impl From<usize> for Count {
    fn from(count: usize) -> Self {
        Self::Fixed(count)
    }
}

impl From<Auto> for Count {
    fn from(_: Auto) -> Self {
        Self::Auto
    }
}

/// The settings of a crew that may change while it runs.
#[derive(Debug)]
pub(crate) struct Settings {
    workers: AtomicUsize,
    prefetch: AtomicUsize,
}

impl Settings {
    pub(crate) fn new(workers: usize, prefetch: usize) -> Arc<Self> {
        Arc::new(Self { workers: AtomicUsize::new(workers), prefetch: AtomicUsize::new(prefetch) })
    }

    /// The number of workers that may be at work.
    pub(crate) fn workers(&self) -> usize {
        self.workers.load(Relaxed)
    }

    #[cfg(all(test, burn_pinned_loom))]
    pub(crate) fn set_workers(&self, workers: usize) {
        self.workers.store(workers, Relaxed);
    }

    /// The number of batches ready ahead of the step.
    pub(crate) fn prefetch(&self) -> usize {
        self.prefetch.load(Relaxed)
    }
}

/// The least time of a window; it also has at least `BATCHES` batches.
pub(super) const WINDOW: Duration = Duration::from_millis(400);
const BATCHES: u32 = 16;
/// A loop that waits for its device now and then takes its batches in bursts. So that a window has whole bursts, it ends
/// with a step like the longest ones, unless it has come to `LONGEST` by then. Of several devices, it is one and the same
/// whose steps end windows. Steps of less than `SHORT` are no such waits.
pub(super) const LONGEST: Duration = WINDOW.saturating_mul(4);
const SHORT: Duration = Duration::from_millis(8);
/// The least time in which a trial can show that it fails; it also takes at least `GLANCE_BATCHES` batches.
const GLANCE: Duration = Duration::from_millis(50);
const GLANCE_BATCHES: u32 = 3;

/// The tuning of one crew, fed by the consumers of all copies of the loader.
#[derive(Debug)]
pub(crate) struct Tuning {
    settings: Arc<Settings>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tuner: Tuner,
    /// This window, so far.
    seen: Seen,
    /// The longest step of late.
    longest: Duration,
    /// The device whose steps end windows. `None` if it is not chosen yet.
    ender: Option<Option<u16>>,
    /// When a batch was last handed out.
    last: Instant,
}

impl State {
    /// Notes a step of a device; returns whether the window is over with it.
    fn ends_with(&mut self, device: Option<u16>, step: Duration) -> bool {
        self.longest = self.longest.max(step.min(WINDOW)); // a pause is no step
        let Seen { time, batches, .. } = self.seen;
        if time >= WINDOW && batches >= BATCHES {
            if self.longest < SHORT {
                return true;
            }
            if step >= self.longest / 2 && *self.ender.get_or_insert(device) == device {
                return true;
            }
            if time >= LONGEST {
                self.ender = None; // it may be at its end
                return true;
            }
        }
        time >= GLANCE && batches >= GLANCE_BATCHES && self.tuner.is_failing(self.seen)
    }
}

impl Tuning {
    pub(crate) fn new(tuner: Tuner, settings: Arc<Settings>) -> Self {
        let state = State { tuner, seen: Seen::default(), longest: Duration::ZERO, ender: None, last: Instant::now() };
        Self { settings, state: Mutex::new(state) }
    }

    #[cfg(test)]
    pub(super) fn seen(&self) -> Seen {
        self.state.lock().seen
    }

    /// Notes a batch for a device: the wait for the loader, and what the step before took. Returns `true` if the settings
    /// have changed. The first batch of an epoch only starts the clock, because its wait is for the start. A window goes on over as many
    /// epochs as it needs.
    pub(crate) fn delivered(&self, device: Option<u16>, waited: Duration, stepped: Option<Duration>) -> bool {
        let mut state = self.state.lock();
        let now = Instant::now();
        let time = now - mem::replace(&mut state.last, now);
        let Some(stepped) = stepped else { return false };
        // Loops of several devices wait side by side. What they wait together counts once.
        state.seen.waited += waited.min(time);
        state.seen.batches += 1;
        state.seen.time += time;
        if !state.ends_with(device, stepped) {
            return false;
        }
        let seen = mem::take(&mut state.seen);
        state.longest /= 4;
        log::debug!("burn-pinned: {} workers, {seen}", state.tuner.workers());
        if let Some(said) = state.tuner.window(seen) {
            log::info!("burn-pinned: {said}");
        }
        let (workers, prefetch) = (state.tuner.workers(), state.tuner.prefetch());
        let before = self.settings.workers.swap(workers, Relaxed);
        let ahead = self.settings.prefetch.swap(prefetch, Relaxed);
        (before, ahead) != (workers, prefetch)
    }
}
