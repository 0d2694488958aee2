//! What all data sets of the process share: locks, threads and their panics, ending waits, open and mapped files, a progress bar, and a
//! random order without a table.
//!
//! `locks` has std's locks, which all code uses. In the model test of reading ahead (cfg `burn_pinned_loom`), that code uses loom's locks
//! instead: loom runs a test through every order of its threads' steps; see `tests/locks`. `.ci/loom` runs the model,
//! `store/ahead/model.rs`.

pub(crate) mod caught;
pub(crate) mod ends;
pub(crate) mod files;
pub mod locks;
pub(crate) mod mapped;
pub(crate) mod parallel;
pub(crate) mod permutation;
pub(crate) mod progress;
pub(crate) mod replace;
#[cfg(any(feature = "remote", feature = "parquet"))]
pub(crate) mod turn;

#[cfg(all(test, burn_pinned_loom))]
pub(crate) use burn_pinned_locks::{Condvar, Mutex, explore};
#[cfg(all(feature = "remote", not(all(test, burn_pinned_loom))))]
pub(crate) use locks::{Condvar, Mutex};

/// Lowers the priority of the calling thread to this `nice` value, so that other threads get a core at once, even if all cores are busy.
/// Only Linux has a priority for each thread.
pub fn step_back(nice: i32) {
    // On Linux `None` means the calling thread. A thread needs no permission to lower its priority, and a refusal does no harm.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, nice);
    let _ = nice;
}
