//! How long each measurement takes, so that all of them end in time.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// What all measurements may take together. Most of it goes by while loaders, decoders and links start.
const ALL: Duration = Duration::from_secs(16);
/// What one of them takes at most, and at least.
const MOST: Duration = Duration::from_millis(500);
const LEAST: Duration = Duration::from_millis(100);

/// Gives each measurement its share of the time that is left.
pub(crate) struct Clock {
    end: Instant,
    /// Measurements that are still to come.
    left: Cell<u32>,
    /// What the user wants each to take.
    fixed: Option<Duration>,
}

impl Clock {
    /// A clock for so many measurements.
    pub(crate) fn new(measurements: usize, fixed: Option<Duration>) -> Self {
        Self { end: Instant::now() + ALL, left: Cell::new(measurements as u32), fixed }
    }

    /// Adds measurements that are to come.
    #[cfg(feature = "cuda")]
    pub(crate) fn expect(&self, measurements: usize) {
        self.left.set(self.left.get() + measurements as u32);
    }

    /// What the next measurement may take. It starts, warms up for half of this time, and measures for all of it.
    pub(crate) fn next(&self) -> Duration {
        let left = self.left.get().max(1);
        self.left.set(left - 1);
        let share = self.end.saturating_duration_since(Instant::now()) / left;
        self.fixed.unwrap_or((share / 3).clamp(LEAST, MOST))
    }
}
