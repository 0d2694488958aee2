//! How long the calling thread has waited for bytes from a store behind a network. Such a wait is no work of a worker, and
//! no reason for more workers of a loader.

use std::{cell::Cell, time::Duration};

thread_local! {
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Runs what waits for bytes, and adds its time.
pub(crate) fn fetching<T>(wait: impl FnOnce() -> T) -> T {
    let start = std::time::Instant::now();
    let came = wait();
    WAITED.set(WAITED.get() + start.elapsed());
    came
}

/// Returns the time that was added since the last call.
pub fn take() -> Duration {
    WAITED.take()
}
