//! Chooses the numbers of workers and of batches ahead while a training runs.

use super::tuner::{Seen, Tuner};
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Lets the loader choose: `num_workers(Auto)`, `prefetch(Auto)`.
///
/// The loader starts with two batches ahead, and with one worker for each thread of the machine but one. With fewer
/// than eight threads, it starts with one worker for each thread. It looks at the training loop every 0.4 s or every 16
/// batches, whichever takes longer; several short epochs may count together. It looks at what the loop got and how long
/// the loop waited. Then it tries a change, and keeps it or takes it back. It logs what it does and why (`log`, level
/// info), and what it sees (level debug). Trials cost some of the first hundred batches, and less and less later.
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
/// The least time in which a trial can show that it fails; it also takes at least `GLANCE_BATCHES` batches.
const GLANCE: Duration = Duration::from_millis(50);
const GLANCE_BATCHES: u32 = 3;

/// The tuning of one crew, fed by the consumers of all copies of the loader.
#[derive(Debug)]
pub(crate) struct Tuning {
    settings: Arc<Settings>,
    state: Mutex<(Tuner, Seen, Instant)>,
}

impl Tuning {
    pub(crate) fn new(tuner: Tuner, settings: Arc<Settings>) -> Self {
        Self { settings, state: Mutex::new((tuner, Seen::default(), Instant::now())) }
    }

    #[cfg(test)]
    pub(super) fn seen(&self) -> Seen {
        self.state.lock().1
    }

    /// Notes a batch and the wait for it; returns `true` if the settings have changed. The first batch of an epoch only
    /// starts the clock, because its wait is for the start. A window goes on over as many epochs as it needs.
    pub(crate) fn delivered(&self, waited: Duration, first: bool) -> bool {
        let mut state = self.state.lock();
        let (tuner, seen, since) = &mut *state;
        let now = Instant::now();
        let time = now - std::mem::replace(since, now);
        if first {
            return false;
        }
        // Loops of several devices wait side by side. What they wait together counts once.
        seen.waited += waited.min(time);
        seen.batches += 1;
        seen.time += time;
        let window = seen.time >= WINDOW && seen.batches >= BATCHES;
        let glance = || seen.time >= GLANCE && seen.batches >= GLANCE_BATCHES;
        let over = window || (glance() && tuner.is_failing(*seen));
        if !over {
            return false;
        }
        log::debug!("burn-pinned: {} workers, {seen}", tuner.workers());
        if let Some(said) = tuner.window(std::mem::take(seen)) {
            log::info!("burn-pinned: {said}");
        }
        let before = self.settings.workers.swap(tuner.workers(), Relaxed);
        let ahead = self.settings.prefetch.swap(tuner.prefetch(), Relaxed);
        (before, ahead) != (tuner.workers(), tuner.prefetch())
    }
}
