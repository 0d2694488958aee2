//! What the process has for all data sets: locks, threads and their panics, the ends of waits, open and mapped files, a progress bar.
//!
//! `locks` has std's locks, and all code uses those but reading ahead, which a model tests. With the cfg `burn_pinned_loom` its locks
//! are those of loom, which runs a test through every order of its threads' steps; see `tests/locks`. `.ci/loom` runs the model,
//! `store/ahead/model.rs`.

pub(crate) mod caught;
#[cfg_attr(not(feature = "remote"), expect(dead_code, unreachable_pub, reason = "no wait is for a store"))]
pub(crate) mod ends;
pub(crate) mod files;
pub mod locks;
pub(crate) mod mapped;
pub(crate) mod parallel;
pub(crate) mod progress;
pub(crate) mod replace;
#[cfg(any(feature = "remote", feature = "parquet"))]
pub(crate) mod turn;

#[cfg(all(test, burn_pinned_loom))]
pub(crate) use burn_pinned_locks::{Condvar, Mutex, explore};
#[cfg(all(feature = "remote", not(all(test, burn_pinned_loom))))]
pub(crate) use locks::{Condvar, Mutex};

/// Lowers the priority of the calling thread to this value of `nice`. Then others get a core at once, even where all cores
/// are busy. Only Linux has a priority for each thread.
pub fn step_back(nice: i32) {
    // On Linux no process names the calling thread. A thread needs no right to be less important, and a refusal changes
    // nothing.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, nice);
    let _ = nice;
}
