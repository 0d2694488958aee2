//! How long each measurement takes, so that all of them end in time. Says which one runs.

use std::{
    cell::Cell,
    fmt,
    io::{IsTerminal, stderr},
    time::{Duration, Instant},
};

/// What all measurements may take together. Most of it goes by while loaders, decoders and links start.
const ALL: Duration = Duration::from_secs(16);
/// What one of them takes at most, and at least.
const MOST: Duration = Duration::from_millis(500);
const LEAST: Duration = Duration::from_millis(100);

/// Gives each measurement its share of the time that is left.
pub(crate) struct Clock {
    start: Instant,
    /// Measurements that are still to come.
    left: Cell<u32>,
    /// What the user wants each to take.
    fixed: Option<Duration>,
}

impl Clock {
    /// A clock for `measurements` measurements.
    pub(crate) fn new(measurements: usize, fixed: Option<Duration>) -> Self {
        Self { start: Instant::now(), left: Cell::new(measurements as u32), fixed }
    }

    /// Adds measurements that are to come.
    #[cfg(feature = "cuda")]
    pub(crate) fn expect(&self, measurements: usize) {
        self.left.set(self.left.get() + measurements as u32);
    }

    /// What the next measurement may take. It starts, warms up for half of this time, and measures for all of it.
    pub(crate) fn next(&self, what: impl fmt::Display) -> Duration {
        self.say(what);
        let left = self.left.get().max(1);
        self.left.set(left - 1);
        let share = ALL.saturating_sub(self.start.elapsed()) / left;
        self.fixed.unwrap_or((share / 3).clamp(LEAST, MOST))
    }

    /// Says on stderr what is being done: on one line of a terminal, else on a line for each.
    pub(crate) fn say(&self, what: impl fmt::Display) {
        let seconds = self.start.elapsed().as_secs_f64();
        match stderr().is_terminal() {
            true => eprint!("\r\x1b[K{seconds:4.1} s  {what}"),
            false => eprintln!("{seconds:4.1} s  {what}"),
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        if stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
    }
}
