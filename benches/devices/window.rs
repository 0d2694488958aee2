//! Times that several threads measure together.

use burn_pinned::BoxError;
use std::{
    sync::Barrier,
    thread::ScopedJoinHandle,
    time::{Duration, Instant},
};

/// What passes before a window opens: all threads run then, and queues are as full as they stay.
const SETTLE: Duration = Duration::from_millis(250);

/// Where threads wait for each other before they measure. Each must come, also one that has failed.
pub(crate) struct Start {
    barrier: Barrier,
    time: Duration,
}

/// The time in which something counts.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    from: Instant,
    until: Instant,
}

impl Start {
    pub(crate) fn new(threads: usize, time: Duration) -> Self {
        Self { barrier: Barrier::new(threads), time }
    }

    /// Waits for all threads.
    pub(crate) fn wait(&self) -> Window {
        self.barrier.wait();
        let from = Instant::now() + SETTLE;
        Window { from, until: from + self.time }
    }
}

impl Window {
    pub(crate) fn has_begun(&self, now: Instant) -> bool {
        now >= self.from
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    pub(crate) fn seconds(&self) -> f64 {
        (self.until - self.from).as_secs_f64()
    }

    /// The share of the time between two instants that lies in the window. What took that time counts so much.
    pub(crate) fn share(&self, from: Instant, until: Instant) -> f64 {
        let inside = until.min(self.until).saturating_duration_since(from.max(self.from));
        inside.as_secs_f64() / (until - from).as_secs_f64().max(1e-9)
    }
}

/// Joins all threads, then returns what they measured, or the first error. `panicked` says what a panic means.
pub(crate) fn joined<'scope, T>(
    threads: impl IntoIterator<Item = ScopedJoinHandle<'scope, Result<T, BoxError>>>,
    panicked: &str,
) -> Result<Vec<T>, BoxError> {
    // All start before the first is joined: they wait for each other.
    let threads: Vec<_> = threads.into_iter().collect();
    let all: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
    all.into_iter().map(|measured| measured.map_err(|_| panicked)?).collect()
}
