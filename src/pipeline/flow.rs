//! The choices of a loader: how many workers, how many batches ahead, how long to wait.

use super::tune::Settings;
use std::{sync::Arc, time::Duration};

/// The number of batches that may be on their way to the device, beyond the `prefetch` batches that are ready. Without
/// them a transfer thread waits for the consumer while the link is idle; see benches/README.md.
const ON_THE_WAY: usize = 2;

/// The fixed choices of a loader and its copies, and those that may change.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) workers: usize,
    /// Whether workers lower their own priority, to leave the cores to the threads that copy.
    #[cfg_attr(
        not(all(feature = "cuda", target_os = "linux")),
        expect(dead_code, reason = "only CUDA has such threads")
    )]
    pub(crate) steps_back: bool,
    /// The number of batches ready on the device ahead of the step, at the start.
    pub(crate) prefetch: usize,
    /// The settings that may change: the numbers of workers at work and of batches ready on the device ahead of the
    /// step.
    pub(crate) now: Arc<Settings>,
    pub(crate) lease_timeout: Duration,
    /// How long `next()` waits for a batch.
    pub(crate) timeout: Option<Duration>,
}

impl Flow {
    /// The number of batches that may be opened ahead of the consumer. Permits allow no more, except after errors: an
    /// error holds no permit.
    pub(crate) fn most_open(&self, slots: usize) -> usize {
        self.now.prefetch() + slots
    }

    /// The most batches ahead of the step that may be on the device or on their way there.
    pub(crate) fn ahead(&self) -> usize {
        self.now.prefetch() + ON_THE_WAY
    }

    /// How long a consumer waits before it does something about it: this long, or half of its timeout.
    pub(super) fn patience(&self, most: Duration) -> Duration {
        self.timeout.map_or(most, |timeout| most.min(timeout / 2))
    }

    /// The number of workers that go on while a filled batch waits for a transfer thread. The others work for other
    /// epochs, or rest. Their writes would push the slots of current copies out of the cache, and would take cores from
    /// the threads that copy; see benches/README.md.
    pub(super) fn steady(&self) -> usize {
        (2 * self.now.workers()).div_ceil(5)
    }
}
