//! Ranges of NVTX, which Nsight Systems shows on the rows of the threads.

use crate::vocabulary::{BatchKey, Stage};
use std::{env, marker::PhantomData, sync::OnceLock};

/// A range on the row of the thread that made it. That thread must also drop it, since ranges of a thread are nested.
pub(crate) struct Range {
    pushed: bool,
    _of_thread: PhantomData<*const ()>,
}

impl Range {
    #[inline]
    pub(crate) fn new(activity: Stage, BatchKey { epoch, number, device, .. }: BatchKey) -> Self {
        let pushed = watched();
        if pushed {
            let device = device.map_or_else(String::new, |device| format!(", device {device}"));
            nvtx::range_push!("{} {number} (epoch {epoch}{device})", activity.name());
        }
        Self { pushed, _of_thread: PhantomData }
    }
}

impl Drop for Range {
    #[inline]
    fn drop(&mut self) {
        if self.pushed {
            nvtx::range_pop!();
        }
    }
}

/// Whether a profiler listens. NVTX looks at the same variable. With this check, a range without a profiler costs
/// nothing, not even its label.
fn watched() -> bool {
    static WATCHED: OnceLock<bool> = OnceLock::new();
    *WATCHED.get_or_init(|| env::var_os("NVTX_INJECTION64_PATH").is_some())
}
