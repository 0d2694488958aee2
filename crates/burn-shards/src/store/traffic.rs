//! The network traffic of a data set.

use crate::{store::busy::Busy, system::locks::Mutex};
use std::time::Duration;

/// Counts the requests and bytes of a store. All readers of a data set share it.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// The sums. `first_byte` is the sum of the times to a first byte. `busy` counts the waits.
    sums: Mutex<Fetched>,
    busy: Busy,
}

/// The network traffic of a data set since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fetched {
    /// Requests that were answered.
    pub requests: u64,
    /// Requests that were repeated after one failed or broke off.
    pub retries: u64,
    /// Bytes received over the network.
    pub bytes: u64,
    /// Bytes that rows and indices needed, from the network or the cache on disk.
    pub used: u64,
    /// Bytes of `used` that came from the cache on disk.
    pub cached: u64,
    /// The mean time from a request to its first byte.
    pub first_byte: Duration,
    /// The time that requests waited because a server asked for it, including during `open`. Overlapping waits count once.
    pub asked_to_wait: Duration,
}

impl Traffic {
    pub(crate) fn new(busy: Busy) -> Self {
        Self { busy, ..Self::default() }
    }

    /// Adds to the sums.
    pub(crate) fn count(&self, add: impl FnOnce(&mut Fetched)) {
        add(&mut self.sums.lock());
    }

    /// Notes bytes that came. `first` is the wait for them, if they are the first of an answer.
    pub(crate) fn came(&self, bytes: u64, first: Option<Duration>) {
        let mut sums = self.sums.lock();
        sums.bytes += bytes;
        if let Some(time) = first {
            sums.requests += 1;
            sums.first_byte += time;
        }
    }

    pub(crate) fn seen(&self) -> Fetched {
        let sums = *self.sums.lock();
        let requests = u32::try_from(sums.requests.max(1)).unwrap_or(u32::MAX);
        Fetched { first_byte: sums.first_byte / requests, asked_to_wait: self.busy.waited(), ..sums }
    }
}
