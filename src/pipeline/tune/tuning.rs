//! Chooses the numbers of workers and of batches ahead while a training runs.

use super::tuner::{Seen, Tuner};
use crate::observe::CopyId;
use parking_lot::Mutex;
use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Lets the loader choose: `num_workers(Auto)`, which is the default, and `prefetch(Auto)`.
///
/// The loader starts with two batches ahead, and with one worker for each thread of the machine but one. With fewer
/// than eight threads, it starts with one worker for each thread. Of several processes on a host, each counts its part of
/// the threads.
///
/// It looks at the training loop every 0.4 s or every 16 batches, whichever takes longer. Several short epochs may count
/// together. If the loop takes its batches in bursts, and then waits for the device, a look takes up to 1.6 s, so that it
/// has whole bursts. The loader sees what the loop got, and how long it waited. A wait for room on the device does not
/// count: no worker can shorten it.
///
/// Then the loader tries a change, and keeps it or takes it back. It logs what it keeps and why (`log`, level info), and
/// what it sees and tries (level debug). Trials cost some of the first hundred batches, and less and less later.
///
/// Until an epoch has its first batch, all workers work. If a loop has waited for 250 ms for a batch that the workers have,
/// and for twice as long as it usually waits, all work until it has that batch: the work may have grown, or a call may
/// hang. Half of `timeout` is enough, if that is less.
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
    /// How long the loop usually waits for a batch, in nanoseconds.
    usual_wait: AtomicU64,
}

impl Settings {
    pub(crate) fn new(workers: usize, prefetch: usize) -> Arc<Self> {
        let [workers, prefetch] = [workers, prefetch].map(AtomicUsize::new);
        Arc::new(Self { workers, prefetch, usual_wait: AtomicU64::new(0) })
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

    /// How long the loop usually waits for a batch.
    pub(crate) fn usual_wait(&self) -> Duration {
        Duration::from_nanos(self.usual_wait.load(Relaxed))
    }

    /// Takes over what was chosen; returns whether it changes anything.
    fn set(&self, tuner: &Tuner, usual_wait: f64) -> bool {
        self.usual_wait.store((1e9 * usual_wait) as u64, Relaxed);
        let (workers, prefetch) = (tuner.workers(), tuner.prefetch());
        (self.workers.swap(workers, Relaxed), self.prefetch.swap(prefetch, Relaxed)) != (workers, prefetch)
    }
}

/// The least time of a window; it also has at least `BATCHES` batches.
pub(super) const WINDOW: Duration = Duration::from_millis(400);
const BATCHES: u32 = 16;
/// A loop that waits for its device now and then takes its batches in bursts. So that a window has whole bursts, it ends
/// with a step like the longest ones, unless it has come to `LONGEST` by then. Of several loops, it is one and the same
/// whose steps end windows. Steps of less than `SHORT` are no such waits, nor are those of less than `LONG` usual ones.
pub(super) const LONGEST: Duration = WINDOW.saturating_mul(4);
const SHORT: Duration = Duration::from_millis(8);
const LONG: u32 = 3;
/// If loops have called all workers so often within `BATCHES` batches, all work from then on.
const CALLS: u32 = 3;
/// The windows that the usual wait is a mean of, about.
const USUAL: f64 = 8.0;
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
    /// What its steps took together.
    stepped: Duration,
    /// The longest step of late.
    longest: Duration,
    /// The loop whose steps end windows, once it is chosen.
    ender: Option<CopyId>,
    /// When a batch was last handed out.
    last: Instant,
    /// How often loops have called all workers of late, and the batches since the first call.
    calls: (u32, u32),
    /// Whether a loop has called since the last batch. Loops side by side call together.
    called: bool,
    /// Whether the wait for the next batch is to be left out, since it was for fewer workers.
    is_spoiled: bool,
    /// The sum of the waits of this window, in seconds, and the sum of their squares.
    waits: (f64, f64),
    /// How long the loop usually waits for a batch, in seconds, by the windows without a trial.
    usual_wait: Option<f64>,
}

impl State {
    fn new(tuner: Tuner) -> Self {
        Self {
            tuner,
            seen: Seen::default(),
            stepped: Duration::ZERO,
            longest: Duration::ZERO,
            ender: None,
            last: Instant::now(),
            calls: (0, 0),
            called: false,
            is_spoiled: false,
            waits: (0.0, 0.0),
            usual_wait: None,
        }
    }

    /// Begins another window; returns the last one. Long waits count more than short ones in the usual wait: where several
    /// batches come at once, most of them are not waited for.
    fn ends(&mut self) -> Seen {
        let (waits, squares) = mem::take(&mut self.waits);
        if self.tuner.has_started() && !self.tuner.tries() {
            let wait = if waits > 0.0 { squares / waits } else { 0.0 };
            let usual = self.usual_wait.get_or_insert(wait);
            *usual += (wait - *usual) / USUAL;
        }
        self.stepped = Duration::ZERO;
        mem::take(&mut self.seen)
    }

    /// Notes a step of a loop, and whether the window is over with it.
    fn ends_with(&mut self, copy: CopyId, step: Duration) -> bool {
        let step = step.min(WINDOW); // more is a pause
        self.stepped += step;
        self.longest = self.longest.max(step);
        let Seen { time, batches, .. } = self.seen;
        let fails = time >= GLANCE && batches >= GLANCE_BATCHES && self.tuner.is_failing(self.seen);
        if time < WINDOW || batches < BATCHES {
            return fails;
        }
        let in_bursts = self.longest >= SHORT && self.longest >= LONG * self.stepped / batches;
        let ends = !in_bursts || (step >= self.longest / 2 && *self.ender.get_or_insert(copy) == copy);
        match ends {
            true if self.tuner.has_started() => self.longest /= 4, // steps change
            true => self.longest = Duration::ZERO,                 // kernels were compiled
            // No other step was like the longest one, so that was a pause. Or this loop is over.
            false if time >= LONGEST => (self.longest, self.ender) = (Duration::ZERO, None),
            false => return fails,
        }
        true
    }
}

impl Tuning {
    pub(crate) fn new(tuner: Tuner, settings: Arc<Settings>) -> Self {
        Self { settings, state: Mutex::new(State::new(tuner)) }
    }

    #[cfg(test)]
    pub(super) fn seen(&self) -> Seen {
        self.state.lock().seen
    }

    /// Notes that a loop has waited for long, and that all workers work for its next batch.
    pub(crate) fn called(&self) {
        let mut state = self.state.lock();
        if mem::replace(&mut state.called, true) {
            return;
        }
        state.calls.0 += 1;
        if state.calls.0 < CALLS {
            return;
        }
        (state.calls, state.is_spoiled) = ((0, 0), true);
        (state.seen, state.waits, state.stepped) = (Seen::default(), (0.0, 0.0), Duration::ZERO);
        self.change(&mut state, Tuner::called);
    }

    /// Lets the tuner choose, and logs why. Returns whether the settings have changed.
    fn change(&self, state: &mut State, choose: impl FnOnce(&mut Tuner) -> Option<String>) -> bool {
        let settled = state.tuner.settled();
        if let Some(said) = choose(&mut state.tuner) {
            let level = if state.tuner.settled() == settled { log::Level::Debug } else { log::Level::Info };
            log::log!(level, "burn-pinned: {said}");
        }
        self.settings.set(&state.tuner, state.usual_wait.unwrap_or_default())
    }

    /// Notes a batch of a loop: the wait for the loader, and what the step before took. Returns `true` if the settings have
    /// changed. Without a step the batch only starts the clock: it is the first of an epoch, or another epoch has just
    /// started. A window goes on over as many epochs as it needs.
    pub(crate) fn delivered(&self, copy: CopyId, waited: Duration, stepped: Option<Duration>) -> bool {
        let mut state = self.state.lock();
        let now = Instant::now();
        let time = now - mem::replace(&mut state.last, now);
        state.calls = match state.calls {
            (0, _) | (_, BATCHES..) => (0, 0),
            (calls, batches) => (calls, batches + 1),
        };
        state.called = false;
        let Some(stepped) = stepped.filter(|_| !mem::take(&mut state.is_spoiled)) else { return false };
        // Loops of several devices wait side by side. What they wait together counts once.
        state.seen.waited += waited.min(time);
        state.seen.batches += 1;
        state.seen.time += time;
        let wait = waited.as_secs_f64();
        state.waits = (state.waits.0 + wait, state.waits.1 + wait * wait);
        if !state.ends_with(copy, stepped) {
            return false;
        }
        let seen = state.ends();
        log::debug!("burn-pinned: {} workers, {seen}", state.tuner.workers());
        self.change(&mut state, |tuner| tuner.window(seen))
    }
}
