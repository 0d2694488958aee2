//! The clocks of a consumer that waits for its next batch.
//!
//! | clock | waits for | how long | then |
//! | --- | --- | --- | --- |
//! | `Flush` | a batch, on an accelerator | [`FLUSH`] | flushes Burn's queued operations. Most waits end sooner, and then the consumer's own next tasks start them |
//! | `Permits` | a slot, on a CPU backend | [`TAKE_PERMITS`], again and again | the consumer takes the permits of batches that are ready for other threads, because these may not be reading their batches. It takes the permits of batches for its own thread at once |
//! | `Slot` | a slot, or memory that any thread waits for, while no worker is in a task | `Settings::lease_timeout` | the epoch ends with [`Error::LeaseTimeout`](crate::Error::LeaseTimeout) |
//! | `Timeout` | a batch | `Settings::timeout`, if the user has set one | the epoch ends with [`Error::Timeout`](crate::Error::Timeout) |
//!
//! A ready batch and a close are notifications. These four cannot be: each means that something has not happened for a
//! time. No other thread gives up a wait for work or memory.

use super::pipeline::Settings;
use std::time::Duration;

const fn unless_modelled(time: Duration, modelled: Duration) -> Duration {
    if cfg!(all(test, burn_pinned_loom)) { modelled } else { time } // a model must not depend on a clock
}

const FLUSH: Duration = unless_modelled(Duration::from_micros(200), Duration::ZERO);
const TAKE_PERMITS: Duration = unless_modelled(Duration::from_millis(100), Duration::ZERO);

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    Flush,
    Permits,
    Slot,
    Timeout,
}

/// The clocks of one wait. All times count from its start.
#[derive(Debug)]
pub(super) struct Clocks {
    flush: Option<Duration>,
    permits: Option<Duration>,
    timeout: Option<Duration>,
    lease_timeout: Duration,
    /// Since when no slot or memory is free, if so.
    lacking: Option<Duration>,
}

impl Clocks {
    pub(super) fn start(settings: &Settings, is_host: bool) -> Self {
        Self {
            flush: (!is_host).then_some(FLUSH),
            permits: is_host.then_some(TAKE_PERMITS),
            timeout: settings.timeout,
            lease_timeout: settings.lease_timeout,
            lacking: None,
        }
    }

    /// Returns a clock that is due after this wait. `is_lacking` says whether slots or memory are unavailable. Only `Permits` recurs.
    pub(super) fn due(&mut self, waited: Duration, is_lacking: bool) -> Option<Clock> {
        self.lacking = is_lacking.then(|| self.lacking.unwrap_or(waited));
        let is_due = |clock: Option<Duration>| clock.is_some_and(|at| waited >= at);
        if is_due(self.timeout) {
            Some(Clock::Timeout)
        } else if self.lacking.is_some_and(|since| waited.saturating_sub(since) >= self.lease_timeout) {
            Some(Clock::Slot)
        } else if is_due(self.flush) {
            self.flush = None;
            Some(Clock::Flush)
        } else if is_due(self.permits) {
            self.permits = Some(waited + TAKE_PERMITS);
            Some(Clock::Permits)
        } else {
            None
        }
    }

    /// How long to sleep until a clock is due; `None` if none ever is. Nothing notifies the consumer when memory runs out, so it checks
    /// again after `lease_timeout` at the latest.
    pub(super) fn sleep(&self, waited: Duration) -> Option<Duration> {
        let slot = self.lacking.unwrap_or(waited).saturating_add(self.lease_timeout);
        let next = [self.flush, self.permits, self.timeout, Some(slot)].into_iter().flatten().min();
        next.filter(|next| *next < Duration::MAX).map(|next| next.saturating_sub(waited))
    }
}
