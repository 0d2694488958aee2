//! Chooses the number of workers if the user sets none: a function of the consumer's measurements, without threads or
//! clocks.
//!
//! It starts with a number that is enough for most loops. While the loop waits and the workers are busy, the number
//! doubles. A doubling that does not help is taken back.

use std::{
    mem,
    time::{Duration, Instant},
};

/// The numbers of workers that may be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) start: usize,
    /// The most workers that compute.
    pub(crate) most: usize,
    /// The most workers if they sleep because they wait for storage or a server.
    pub(crate) most_asleep: usize,
}

impl Bounds {
    /// Bounds for a number that the user has set.
    pub(crate) fn fixed(workers: usize) -> Self {
        Self { start: workers, most: workers, most_asleep: workers }
    }
}

/// The consumer's measurements when it takes a batch. The times after `stepped` are sums since the loader was built.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sight {
    pub(crate) now: Instant,
    /// How long the consumer waited for the loader, without waits for space on the device.
    pub(crate) waited: Duration,
    /// How long the step before took. `None` for the first batch of an epoch.
    pub(crate) stepped: Option<Duration>,
    /// The time that the workers' tasks took.
    pub(crate) worked: Duration,
    /// The time that tasks with slow reads took, and the part of it in which the worker did not sleep.
    pub(crate) took: Duration,
    pub(crate) awake: Duration,
}

/// A window is at least `WINDOW` long and has at least `BATCHES` batches. The time is that of a few bursts of a loop
/// that runs ahead of its device.
const WINDOW: Duration = Duration::from_millis(500);
const BATCHES: usize = 8;
/// A loop that runs ahead of its device waits for it now and then: it takes batches in bursts, with a long step in
/// between. A window ends at such a step, so that it never splits a burst, or when it is this long.
const LONGEST: Duration = Duration::from_secs(2);
/// The share of a window that the loop may wait before more workers are tried.
const CALM: f64 = 0.01;
/// The share of the workers' time that must be work. If it is less, the workers are not the limit.
const BUSY: f64 = 0.5;
/// The gain that a doubling must bring to be kept.
const GAIN: f64 = 1.02;
/// How long no doubling is tried after one was taken back.
const PAUSE: Duration = Duration::from_secs(30);

/// Chooses the number of workers.
#[derive(Debug)]
pub(crate) struct Growth {
    bounds: Bounds,
    /// The fewest batches of a window.
    fewest: u32,
    workers: usize,
    window: Option<Window>,
    /// The number of workers before a doubling that is being tried, and the rate with them.
    trial: Option<(usize, f64)>,
    /// When a doubling may be tried again.
    paused: Option<Instant>,
}

#[derive(Debug)]
struct Window {
    start: Sight,
    batches: u32,
    waited: Duration,
    longest: Duration,
    time: Duration,
    last: Instant,
}

impl Growth {
    /// One batch may contain `batches_in_one` of the user's batches.
    pub(crate) fn new(bounds: Bounds, batches_in_one: usize) -> Self {
        let fewest = BATCHES.div_ceil(batches_in_one) as u32; // 8 at most
        Self { bounds, fewest, workers: bounds.start, window: None, trial: None, paused: None }
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// Takes in a batch. Returns another number of workers, and why, when a window ends with it and the number changes.
    pub(crate) fn choose(&mut self, sight: Sight) -> Option<(usize, String)> {
        if self.bounds.start == self.bounds.most_asleep {
            return None; // the number may not change
        }
        let window = self.window.get_or_insert_with(|| Window::new(sight));
        if !window.add(sight, self.fewest) {
            return None;
        }
        let window = mem::replace(window, Window::new(sight));
        let before = self.workers;
        let why = self.judge(&window, sight)?;
        Some((self.workers, format!("workers {before} -> {}: {why}", self.workers)))
    }

    fn judge(&mut self, window: &Window, end: Sight) -> Option<String> {
        let seconds = window.time.as_secs_f64().max(1e-9);
        let (rate, waits) = (f64::from(window.batches) / seconds, window.waited.as_secs_f64() / seconds);
        if let Some((fewer, then)) = self.trial.take()
            && rate < GAIN * then
        {
            (self.workers, self.paused) = (fewer, Some(end.now + PAUSE));
            return Some(format!("more gave {:.2} x the batches", rate / then.max(1e-9)));
        }
        let worked = (end.worked - window.start.worked).as_secs_f64();
        let took = (end.took - window.start.took).as_secs_f64();
        let awake = (end.awake - window.start.awake).as_secs_f64();
        let asleep = took > 0.5 * worked && awake < 0.5 * took;
        let most = if asleep { self.bounds.most_asleep } else { self.bounds.most };
        let busy = worked >= BUSY * seconds * self.workers as f64;
        let is_paused = self.paused.is_some_and(|until| end.now < until);
        if waits <= CALM || !busy || is_paused || self.workers >= most {
            return None;
        }
        self.trial = Some((self.workers, rate));
        self.workers = (2 * self.workers).min(most);
        let what = if asleep { "they sleep while they read" } else { "they are busy" };
        Some(format!("the step waits {:.0} % of its time, and {what}", 100.0 * waits))
    }
}

impl Window {
    fn new(start: Sight) -> Self {
        let (waited, longest, time) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        Self { start, batches: 0, waited, longest, time, last: start.now }
    }

    /// Adds a batch. Returns whether the window ends with it, which needs at least `fewest` batches. The time between
    /// two epochs does not count.
    fn add(&mut self, Sight { now, waited, stepped, .. }: Sight, fewest: u32) -> bool {
        let time = now - mem::replace(&mut self.last, now);
        let Some(stepped) = stepped else { return false };
        self.batches += 1;
        self.time += time;
        self.waited += waited.min(time);
        let step = stepped.min(WINDOW); // a longer step counts as a pause
        self.longest = self.longest.max(step);
        let ends = self.time >= LONGEST || step >= self.longest / 2;
        self.batches >= fewest && self.time >= WINDOW && ends
    }
}

#[cfg(test)]
mod tests;
