//! Turns a training loop's rate into settings. It knows no thread and no clock.

use std::{fmt, mem, time::Duration};

/// The largest number of batches ahead that is chosen.
pub(crate) const MOST_AHEAD: usize = 8;

/// What the consumer saw during some time.
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

    fn waits(&self) -> f64 {
        self.waited.as_secs_f64() / self.time.as_secs_f64().max(1e-9)
    }

    /// The time of a batch, and what of it the loop waited.
    fn of_batch(&self) -> (f64, f64) {
        let batches = f64::from(self.batches.max(1));
        (self.time.as_secs_f64() / batches, self.waited.as_secs_f64() / batches)
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} batches/s, the step waits {:.1} %", self.rate(), 100.0 * self.waits())
    }
}

/// If the loop waits for no more than this share of its time, there is nothing to gain.
const CALM: f64 = 0.005;
/// If the loop waits for more than this share of its time, the loader is far too slow. A reserve would be used up at
/// once.
const MOSTLY_WAITS: f64 = 0.5;
/// The share of its rate that the loop may lose to fewer workers, or to noise.
const SLACK: f64 = 0.01;
/// A trial that reaches less than this share of the rate has failed: its whole window is not needed. Among few batches,
/// some were filled before the trial. So with few batches only a smaller share is a sure sign.
const FAILING: f64 = 0.85;
const FAILING_OF_FEW: f64 = 0.7;
const FEW: u32 = 6;
/// If `STRANGE` windows in a row differ by `MUCH` from what was seen with the same settings, the work has changed.
const MUCH: f64 = 0.1;
const STRANGE: u32 = 3;
/// The most windows that a mean is made of.
const MEMORY: f64 = 16.0;
/// Each window multiplies the weight of windows with other settings by `FADE`. `FORGOTTEN` is too little weight to use.
const FADE: f64 = 0.98;
const FORGOTTEN: f64 = 0.25;
/// The number of windows to wait after a trial that failed. It doubles each time until a trial succeeds, so that trials
/// cost less and less.
const FIRST_PAUSE: u32 = 4;
const LONGEST_PAUSE: u32 = 512;
/// After so many times the last pause without a call, earlier calls no longer count.
const QUIET: u32 = 4;

/// A number of workers, and the means of what the loop got with it lately.
#[derive(Debug, Clone, Copy)]
struct Level {
    workers: usize,
    rate: f64,
    waits: f64,
    /// The number of windows in the means; those of long ago count less.
    windows: f64,
}

impl Level {
    fn add(&mut self, seen: Seen) {
        self.windows = (self.windows + 1.0).min(MEMORY);
        self.rate += (seen.rate() - self.rate) / self.windows;
        self.waits += (seen.waits() - self.waits) / self.windows;
    }

    /// Whether a window is as expected from the ones before.
    fn expects(&self, seen: Seen) -> bool {
        self.windows < 1.0
            || ((seen.rate() / self.rate.max(1e-9) - 1.0).abs() < MUCH && (seen.waits() - self.waits).abs() < MUCH)
    }
}

/// The direction of a trial of workers, and how far it goes. A trial that fails is followed by one of the next stride,
/// because the rate may fall before it gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stride {
    Fewer,
    More,
    MuchFewer,
}

impl Stride {
    const fn next(self) -> Self {
        match self {
            Self::Fewer => Self::More,
            Self::More => Self::MuchFewer,
            Self::MuchFewer => Self::Fewer,
        }
    }
}

/// The number of windows before something is tried again: `left` for this pause, `next` for the next one.
#[derive(Debug, Clone, Copy)]
struct Pause {
    left: u32,
    next: u32,
}

impl Pause {
    const NONE: Self = Self { left: 0, next: FIRST_PAUSE };

    /// Counts one more window; returns whether the pause is over.
    fn pass(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// Begins the pause, and makes the next one twice as long. After a trial that was far off, this pause is already
    /// four times as long.
    fn begin(&mut self, far_off: bool) {
        self.left = if far_off { 4 * self.next } else { self.next }.min(LONGEST_PAUSE);
        self.next = (2 * self.left).min(LONGEST_PAUSE);
    }
}

/// Turns what is seen into settings.
#[derive(Debug, Clone)]
pub(crate) struct Tuner {
    /// From the most workers to the fewest. Each level has three quarters of the workers of the one before.
    levels: Vec<Level>,
    /// The level that is settled on; `trial` is the one that is being tried.
    home: usize,
    trial: Option<usize>,
    stride: Stride,
    pause: Pause,
    /// The number of windows in a row that were not as expected.
    strange: u32,
    started: bool,
    ahead: Ahead,
    /// The pauses after all workers were called, and the number of windows since then.
    called: Pause,
    quiet: u32,
}

/// The batches ahead.
#[derive(Debug, Clone)]
struct Ahead {
    now: usize,
    most: usize,
    /// Whether the last of them is a trial.
    trial: bool,
    pause: Pause,
}

impl Tuner {
    /// Starts with the most workers and the fewest batches ahead. A setting whose least equals its most stays as it is.
    pub(crate) fn new((least, most): (usize, usize), prefetch: (usize, usize)) -> Self {
        let fewer = |workers: &usize| (*workers > least).then(|| (workers * 3 / 4).max(least));
        let level = |workers| Level { workers, rate: 0.0, waits: 0.0, windows: 0.0 };
        Self {
            levels: std::iter::successors(Some(most), fewer).map(level).collect(),
            home: 0,
            trial: None,
            stride: Stride::Fewer,
            pause: Pause::NONE,
            strange: 0,
            called: Pause::NONE,
            quiet: 0,
            started: false,
            ahead: Ahead { now: prefetch.0, most: prefetch.1, trial: false, pause: Pause::NONE },
        }
    }

    /// Whether there is anything to tune.
    pub(crate) fn has_choice(&self) -> bool {
        self.levels.len() > 1 || self.ahead.now < self.ahead.most
    }

    /// Whether the first window is over, which has the start in it.
    pub(crate) fn has_started(&self) -> bool {
        self.started
    }

    pub(crate) fn workers(&self) -> usize {
        self.levels[self.trial.unwrap_or(self.home)].workers
    }

    pub(crate) fn prefetch(&self) -> usize {
        self.ahead.now
    }

    /// Whether something is tried.
    pub(crate) fn tries(&self) -> bool {
        self.trial.is_some() || self.ahead.trial
    }

    /// The numbers of workers and of batches ahead without what is only tried.
    pub(crate) fn settled(&self) -> (usize, usize) {
        (self.levels[self.home].workers, self.ahead.now - usize::from(self.ahead.trial))
    }

    /// Whether a trial has failed before its window is over. At least half of the time that a batch takes longer must be
    /// waits: a loop that runs ahead of its device and then waits for it looks slow too.
    pub(crate) fn is_failing(&self, seen: Seen) -> bool {
        let least = if seen.batches < FEW { FAILING_OF_FEW } else { FAILING };
        let home = self.levels[self.home];
        let (time, waited) = seen.of_batch();
        let usual = 1.0 / home.rate.max(1e-9);
        let by_waits = waited - home.waits * usual >= (time - usual) / 2.0;
        self.trial.is_some() && seen.waits() > CALM && seen.rate() < least * home.rate && by_waits
    }

    /// Takes in a window; returns a text that says what is changed or kept, and why.
    pub(crate) fn window(&mut self, seen: Seen) -> Option<String> {
        if !mem::replace(&mut self.started, true) {
            return None; // it includes the start, so it is no measure
        }
        self.quiet = self.quiet.saturating_add(1);
        if self.quiet > QUIET * self.called.next {
            self.called = Pause::NONE;
        }
        if mem::take(&mut self.ahead.trial) {
            return Some(self.judge_ahead(seen));
        }
        let tried = self.trial.take();
        let at = tried.unwrap_or(self.home);
        if tried.is_none() {
            self.strange = if self.levels[at].expects(seen) { 0 } else { self.strange + 1 };
            match self.strange {
                0 => {}
                STRANGE => return Some(self.begin_anew(seen)),
                _ => return None, // the loop itself may have paused
            }
        }
        for (_, level) in self.levels.iter_mut().enumerate().filter(|(number, _)| ![self.home, at].contains(number)) {
            level.windows *= FADE;
        }
        self.levels[at].add(seen);
        let best = self.best();
        if tried.is_some() || (best != self.home && self.levels[self.home].windows >= 3.0) {
            return Some(self.settle(tried, best));
        }
        let waits = self.levels[self.home].waits;
        let (some, most) = (waits > 2.0 * CALM, waits > MOSTLY_WAITS);
        if self.ahead.pause.pass() && some && !most && self.ahead.now < self.ahead.most {
            self.ahead.trial = true;
            self.ahead.now += 1;
            return Some(format!("prefetch {} -> {}: a trial", self.ahead.now - 1, self.ahead.now));
        }
        if self.pause.pass()
            && let Some(to) = self.next_trial(some)
        {
            self.trial = Some(to);
            return Some(format!("workers {} -> {}: a trial", self.levels[self.home].workers, self.levels[to].workers));
        }
        None
    }

    /// Takes in that the loop has called all workers too often: takes a trial of fewer workers back, or goes to the most.
    /// Returns a text that says so.
    pub(crate) fn called(&mut self) -> Option<String> {
        let home = self.home;
        let Some(tried) = self.trial.take_if(|tried| *tried > home) else { return self.call_all() };
        self.stride = Stride::Fewer; // with much fewer, the loop would call even more
        self.pause.begin(true);
        let [tried, home] = [tried, home].map(|level| self.levels[level].workers);
        Some(format!("workers {tried} -> {home}: the step waits for long"))
    }

    /// Goes to the most workers at once, and stays there for a while, each time for longer. Returns a text that says so, if
    /// there were fewer.
    fn call_all(&mut self) -> Option<String> {
        let (before, most) = (self.workers(), self.levels[0].workers);
        if before == most {
            return None;
        }
        if mem::take(&mut self.ahead.trial) {
            self.ahead.now -= 1;
        }
        self.forget();
        self.called.begin(false);
        self.quiet = 0;
        self.pause.left = self.called.left;
        (self.home, self.trial, self.stride) = (0, None, Stride::Fewer);
        Some(format!("workers {before} -> {most}: the step mostly waits now"))
    }

    /// The level with the fewest workers that is as good as the best one, or with which the loop does not wait. The
    /// level that is settled on is left only for a clearly better one.
    fn best(&self) -> usize {
        let known = || self.levels.iter().enumerate().filter(|(_, level)| level.windows > FORGOTTEN);
        let Some((_, best)) = known().max_by(|(_, a), (_, b)| a.rate.total_cmp(&b.rate)) else { return self.home };
        let is_good = |(number, level): &(usize, &Level)| {
            let slack = if *number == self.home { 2.0 * SLACK } else { SLACK };
            level.waits <= CALM || (level.rate >= (1.0 - slack) * best.rate && level.waits <= best.waits + slack)
        };
        known().rfind(is_good).map_or(self.home, |(number, _)| number)
    }

    /// Goes to the best level, after a trial or because the one settled on has turned out to be worse.
    fn settle(&mut self, tried: Option<usize>, best: usize) -> String {
        let from = mem::replace(&mut self.home, best);
        let at = tried.unwrap_or(from);
        if best == from {
            self.stride = self.stride.next();
            self.pause.begin(self.is_far_off(at));
        } else {
            self.stride = if best > from { Stride::Fewer } else { Stride::More };
            self.pause = Pause::NONE;
        }
        let kept = best == at;
        let (seen, other) = (self.levels[at], self.levels[if kept { from } else { best }]);
        let what = if kept { "are kept".into() } else { format!("-> {}", other.workers) };
        let (rate, now, then) = (seen.rate / other.rate.max(1e-9), 100.0 * seen.waits, 100.0 * other.waits);
        format!(
            "workers {} {what}: {rate:.2} x the rate of {}, the step waits {now:.1} % instead of {then:.1} %",
            seen.workers, other.workers
        )
    }

    /// Starts anew because the work has changed: nothing is known about it, and it may need more workers. If the loop
    /// waited little before, and mostly waits now, it needs them at once.
    fn begin_anew(&mut self, seen: Seen) -> String {
        let home = self.levels[self.home];
        let starves = home.waits <= MOSTLY_WAITS && seen.waits() > MOSTLY_WAITS;
        if starves && let Some(called) = self.call_all() {
            return called;
        }
        self.forget();
        self.stride = Stride::More;
        let change = seen.rate() / home.rate.max(1e-9);
        self.levels[self.home].add(seen);
        format!("the work has changed: {change:.2} x the earlier rate with {} workers", home.workers)
    }

    fn forget(&mut self) {
        self.levels.iter_mut().for_each(|level| level.windows = 0.0);
        (self.pause, self.ahead.pause, self.strange) = (Pause::NONE, Pause::NONE, 0);
    }

    /// Whether a level is known to be much worse than the one that is settled on.
    fn is_far_off(&self, level: usize) -> bool {
        let far = (1.0 - MUCH) * self.levels[self.home].rate;
        self.levels.get(level).is_some_and(|level| level.windows > FORGOTTEN && level.rate < far)
    }

    /// The level of the next trial, by stride. More workers are tried only if the loop waits. Much fewer workers are
    /// not tried if fewer were far off.
    fn next_trial(&mut self, waits: bool) -> Option<usize> {
        for _ in 0..3 {
            let to = match self.stride {
                Stride::Fewer => Some(self.home + 1),
                Stride::MuchFewer => Some(self.home + 2).filter(|_| !self.is_far_off(self.home + 1)),
                Stride::More => self.home.checked_sub(1).filter(|_| waits),
            };
            if let Some(to) = to.filter(|to| *to < self.levels.len()) {
                return Some(to);
            }
            self.stride = self.stride.next();
        }
        None
    }

    /// Keeps one more batch ahead, or takes it back.
    fn judge_ahead(&mut self, seen: Seen) -> String {
        let (now, before) = (self.ahead.now, self.levels[self.home]);
        let (share, then) = (100.0 * seen.waits(), 100.0 * before.waits);
        let why = format!("the step waits {share:.1} % instead of {then:.1} %");
        if seen.waits() < 0.8 * before.waits && seen.rate() > before.rate {
            self.forget();
            return format!("prefetch {now} are kept: {why}");
        }
        self.ahead.now -= 1;
        self.ahead.pause.begin(false);
        format!("prefetch {now} -> {}: {why}", self.ahead.now)
    }
}
