//! What went over the network for a data set.

use crate::store::busy::Busy;
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Counts what a store is asked for. All readers of a data set share it.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    requests: AtomicU64,
    retries: AtomicU64,
    bytes: AtomicU64,
    used: AtomicU64,
    cached: AtomicU64,
    /// The sum of the times to a first byte, in nanoseconds.
    first_bytes: AtomicU64,
    busy: Busy,
}

/// What went over the network for a data set, since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fetched {
    /// Requests that were answered.
    pub requests: u64,
    /// Requests that were made again, after one that failed or broke off.
    pub retries: u64,
    /// Bytes that came over the network.
    pub bytes: u64,
    /// Bytes that rows and indices were made of, from the network or a cache.
    pub used: u64,
    /// Bytes of `used` that came from the cache on disk.
    pub cached: u64,
    /// The mean time from a request to its first byte.
    pub first_byte: Duration,
    /// The time in which requests waited because the server had asked for it, also while the rows were opened. Waits at the same
    /// time count once.
    pub asked_to_wait: Duration,
}

impl Traffic {
    pub(crate) fn new(busy: Busy) -> Self {
        Self { busy, ..Self::default() }
    }

    /// Notes bytes that came. `first` is the wait for them, if they are the first of an answer.
    pub(crate) fn came(&self, bytes: u64, first: Option<Duration>) {
        self.bytes.fetch_add(bytes, Relaxed);
        if let Some(time) = first {
            self.requests.fetch_add(1, Relaxed);
            self.first_bytes.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        }
    }

    pub(crate) fn retried(&self) {
        self.retries.fetch_add(1, Relaxed);
    }

    /// Notes bytes that a format asked for.
    pub(crate) fn used(&self, bytes: u64) {
        self.used.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn cached(&self, bytes: u64) {
        self.cached.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn seen(&self) -> Fetched {
        let requests = self.requests.load(Relaxed);
        Fetched {
            requests,
            retries: self.retries.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            used: self.used.load(Relaxed),
            cached: self.cached.load(Relaxed),
            first_byte: Duration::from_nanos(self.first_bytes.load(Relaxed) / requests.max(1)),
            asked_to_wait: self.busy.waited(),
        }
    }
}
