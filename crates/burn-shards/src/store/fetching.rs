//! How long the calling thread has waited for bytes from a remote store. A loader does not count such waits as work, and does not add
//! workers because of them.

use std::{cell::Cell, time::Duration};

thread_local! {
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Runs a wait for bytes, and adds its time.
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
