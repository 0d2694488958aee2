//! Choosing the number of workers and of batches ahead while a training runs.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Lets the loader choose: `num_workers(Auto)`, `prefetch(Auto)`.
///
/// The loader starts with a worker for each thread of the machine but one (of fewer than eight: for each), and two batches ahead.
/// About twice a second, also over several short epochs, it looks at what the training loop got and how long it waited, tries a
/// change, and keeps it or takes it back; what it does and why is logged (`log`, level info).
///
/// - Workers: as few as give the loop all that the most would give, so that the cores are left to the training. The most are
///   what it starts with.
/// - Batches ahead: up to 8, within `pinned_limit`, where more of them make the loop wait less, as with samples that take
///   very different times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Auto;

/// A fixed number, or [`Auto`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// So many.
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

/// The most batches ahead that are chosen.
pub(crate) const MOST_AHEAD: usize = 8;

/// What the consumer saw in a while.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    pub(crate) time: Duration,
    pub(crate) waited: Duration,
    pub(crate) batches: u32,
}

impl Seen {
    fn rate(&self) -> f64 {
        f64::from(self.batches) / self.time.as_secs_f64().max(1e-9)
    }

    fn wait_share(&self) -> f64 {
        self.waited.as_secs_f64() / self.time.as_secs_f64().max(1e-9)
    }
}

/// What is being changed, and what was seen before.
#[derive(Debug, Clone, Copy)]
struct Trial {
    what: Knob,
    from: usize,
    before: Seen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Knob {
    Workers,
    Prefetch,
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Workers => "workers",
            Self::Prefetch => "prefetch",
        })
    }
}

/// One knob's range and setting.
#[derive(Debug, Clone, Copy)]
struct Range {
    now: usize,
    least: usize,
    most: usize,
    /// After a trial that failed.
    pause: Pause,
    /// The next trial is of half rather than of three quarters: one that fails may be a dip on the way to something better.
    far: bool,
}

impl Range {
    fn new(now: usize, least: usize, most: usize) -> Self {
        Self { now, least, most, pause: Pause::default(), far: false }
    }

    fn fewer(&self) -> usize {
        let fewer = if self.far { self.now / 2 } else { self.now * 3 / 4 };
        fewer.max(self.least)
    }
}

/// When all workers are called for at once, on a hint as small as noise: ever more rarely, until one has shown that they were needed.
#[derive(Debug, Clone, Copy)]
struct Jump {
    /// The workers that the last one was from.
    from: usize,
    pause: Pause,
}

/// Windows to pass before something is tried again, and the next time.
#[derive(Debug, Clone, Copy)]
struct Pause {
    left: u32,
    next: u32,
}

impl Default for Pause {
    fn default() -> Self {
        Self { left: 0, next: FIRST_PAUSE }
    }
}

impl Pause {
    fn pass(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Begins, and will be twice as long the next time.
    fn begin(&mut self) {
        self.left = self.next;
        self.next = (2 * self.next).min(LONGEST_PAUSE);
    }
}

/// The loop waits so little that nothing is to be gained.
const CALM: f64 = 0.005;
/// The loop does next to nothing but wait.
const ONLY_WAITS: f64 = 0.9;
/// The loop waits so much more that the work must have changed.
const MUCH: f64 = 0.1;
/// A share of its rate that the loop may lose to a trial, or to noise.
const SLACK: f64 = 0.01;
/// A trial with fewer workers that gives less than this share of the rate has failed: nobody need see the whole window.
const FAILING: f64 = 0.8;
/// Less than this share of the best rate of late, in so many windows in a row, and there are too few workers.
const LOW: f64 = 0.95;
const LOW_WINDOWS: u32 = 2;
/// What a window leaves of the best rate before it, which may have been that of other work.
const FADE: f64 = 0.998;
/// Windows after a trial that failed; doubled each time, so that trials cost ever less.
const FIRST_PAUSE: u32 = 4;
const LONGEST_PAUSE: u32 = 512;

/// Turns what is seen into settings. Knows no thread and no clock.
#[derive(Debug)]
pub(crate) struct Tuner {
    workers: Range,
    prefetch: Range,
    trial: Option<Trial>,
    last: Option<Seen>,
    /// Going back to all workers at once.
    jump: Jump,
    /// The best rate of late, and for how many windows it was much lower.
    best: f64,
    low: u32,
}

impl Tuner {
    /// Starts at some settings; a knob whose least and most are the same stays.
    pub(crate) fn new(workers: (usize, usize), prefetch: (usize, usize)) -> Self {
        Self {
            workers: Range::new(workers.1, workers.0, workers.1),
            prefetch: Range::new(prefetch.0, prefetch.0, prefetch.1),
            trial: None,
            last: None,
            jump: Jump { from: workers.1, pause: Pause::default() },
            best: 0.0,
            low: 0,
        }
    }

    /// Whether there is anything to tune.
    pub(crate) fn has_choice(&self) -> bool {
        self.workers.least < self.workers.most || self.prefetch.least < self.prefetch.most
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers.now
    }

    pub(crate) fn prefetch(&self) -> usize {
        self.prefetch.now
    }

    fn knob(&mut self, knob: Knob) -> &mut Range {
        match knob {
            Knob::Workers => &mut self.workers,
            Knob::Prefetch => &mut self.prefetch,
        }
    }

    /// Takes in a window; gives in words what is changed or kept, and why.
    pub(crate) fn window(&mut self, seen: Seen) -> Option<String> {
        let last = self.last.replace(seen);
        if let Some(trial) = self.trial.take() {
            return self.judge(trial, seen);
        }
        self.low = if seen.rate() < LOW * self.best { self.low + 1 } else { 0 };
        self.best = seen.rate().max(FADE * self.best);
        // The work has changed, or a trial was kept by mistake.
        self.jump.pause.pass();
        let more = last.map_or(f64::INFINITY, |last| seen.wait_share() - last.wait_share());
        let hint = more > SLACK && self.jump.pause.left == 0;
        if seen.wait_share() > 4.0 * CALM
            && self.workers.now < self.workers.most
            && (self.low >= LOW_WINDOWS || more > MUCH || hint)
        {
            (self.best, self.low) = (0.0, 0);
            let from = self.workers.now;
            self.workers.now = self.workers.most;
            self.workers.pause.left = self.workers.pause.next;
            self.jump.from = from;
            self.jump.pause.begin();
            let waits = 100.0 * seen.wait_share();
            return Some(format!("workers {from} -> {}: the step waits {waits:.1} % of its time", self.workers.now));
        }
        last?; // the first window has the start in it, and is no measure
        for knob in [Knob::Prefetch, Knob::Workers] {
            // A loop that does nothing but wait is not helped by a reserve, which it would have used up at once.
            let waits = seen.wait_share() > 2.0 * CALM && seen.wait_share() < ONLY_WAITS;
            let range = self.knob(knob);
            range.pause.pass();
            let to = match knob {
                Knob::Workers => range.fewer(),
                Knob::Prefetch if waits => (range.now + 1).min(range.most),
                Knob::Prefetch => range.now,
            };
            if to != range.now && range.pause.left == 0 {
                let from = std::mem::replace(&mut range.now, to);
                self.trial = Some(Trial { what: knob, from, before: seen });
                return Some(format!("{knob} {from} -> {to}: a trial"));
            }
        }
        None
    }

    /// Whether a trial has failed before its window is over.
    pub(crate) fn is_failing(&self, seen: Seen) -> bool {
        self.trial
            .is_some_and(|Trial { what, before, .. }| what == Knob::Workers && seen.rate() < FAILING * before.rate())
    }

    /// Keeps what a trial changed, or takes it back.
    fn judge(&mut self, trial: Trial, seen: Seen) -> Option<String> {
        let Trial { what, from, before } = trial;
        let rate = seen.rate() / before.rate().max(1e-9);
        let good = match what {
            Knob::Workers => rate >= 1.0 - SLACK && seen.wait_share() <= (before.wait_share() + SLACK).max(CALM),
            Knob::Prefetch => seen.wait_share() < 0.8 * before.wait_share() && rate > 1.0,
        };
        let (then, now) = (100.0 * before.wait_share(), 100.0 * seen.wait_share());
        let why = format!("{rate:.2} x the rate, the step waits {now:.1} % instead of {then:.1} %");
        let clearly = rate < LOW || seen.wait_share() > before.wait_share() + MUCH;
        if what == Knob::Workers && clearly && self.workers.now >= self.jump.from {
            self.jump.pause.next = FIRST_PAUSE; // more workers than before the last jump are needed
        }
        let range = self.knob(what);
        if good {
            (range.pause.next, range.far) = (FIRST_PAUSE, false);
            return Some(format!("{what} {} are kept: {why}", range.now));
        }
        range.pause.begin();
        range.far = !range.far;
        let to = std::mem::replace(&mut range.now, from);
        Some(format!("{what} {to} -> {from}: {why}"))
    }
}

/// The settings of a pipeline that may change while it runs.
#[derive(Debug)]
pub(crate) struct Settings {
    workers: AtomicUsize,
    prefetch: AtomicUsize,
}

impl Settings {
    pub(crate) fn new(workers: usize, prefetch: usize) -> Arc<Self> {
        Arc::new(Self { workers: AtomicUsize::new(workers), prefetch: AtomicUsize::new(prefetch) })
    }

    /// Workers that may be at work.
    pub(crate) fn workers(&self) -> usize {
        self.workers.load(Relaxed)
    }

    /// Batches ready ahead of the step.
    pub(crate) fn prefetch(&self) -> usize {
        self.prefetch.load(Relaxed)
    }
}

/// A window is at least so long, and has so many batches.
const WINDOW: Duration = Duration::from_millis(400);
const BATCHES: u32 = 16;
/// A trial shows that it fails in no less.
const GLANCE: Duration = Duration::from_millis(50);
const GLANCE_BATCHES: u32 = 6;

/// The tuning of one pipeline, fed by its consumers.
#[derive(Debug)]
pub(crate) struct Tuning {
    settings: Arc<Settings>,
    state: Mutex<(Tuner, Seen, Instant)>,
}

impl Tuning {
    pub(crate) fn new(tuner: Tuner, settings: Arc<Settings>) -> Self {
        Self { settings, state: Mutex::new((tuner, Seen::default(), Instant::now())) }
    }

    /// Notes a batch that was waited for; `true` if the settings have changed. The first of an epoch only starts the clock: what it
    /// waits for is the start. A window goes on over as many epochs as it takes.
    pub(crate) fn delivered(&self, waited: Duration, first: bool) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (tuner, seen, since) = &mut *state;
        let now = Instant::now();
        let time = now - std::mem::replace(since, now);
        if first {
            return false;
        }
        seen.waited += waited;
        seen.batches += 1;
        seen.time += time;
        let window = seen.time >= WINDOW && seen.batches >= BATCHES;
        let glance = || seen.time >= GLANCE && seen.batches >= GLANCE_BATCHES;
        let over = window || (glance() && tuner.is_failing(*seen));
        if !over {
            return false;
        }
        if let Some(said) = tuner.window(std::mem::take(seen)) {
            log::info!("burn-pinned: {said}");
        }
        let before = self.settings.workers.swap(tuner.workers(), Relaxed);
        let ahead = self.settings.prefetch.swap(tuner.prefetch(), Relaxed);
        (before, ahead) != (tuner.workers(), tuner.prefetch())
    }
}

#[cfg(test)]
mod tests;
