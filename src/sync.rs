//! What threads share: the locks and conditions of the pool and of the pipeline, and the cores (`priority`).
//!
//! `locks` has std's locks, and all code uses those but what the models test: the pool and the pipeline. With the cfg
//! `burn_pinned_loom` theirs are those of loom, which runs a test through every order of its threads' steps; see `tests/locks`.
//! `.ci/loom` runs the models, `memory/pool/model.rs` and `pipeline/pipeline/model.rs`.

#[allow(dead_code, reason = "burn-shards has the same file: each crate needs a part of it")]
pub(crate) mod locks;

#[cfg(all(target_os = "linux", feature = "cuda"))]
mod priority;

#[cfg(all(test, burn_pinned_loom))]
pub(crate) use burn_pinned_locks::{Condvar, Mutex, MutexGuard, explore};
#[cfg(not(all(test, burn_pinned_loom)))]
pub(crate) use locks::{Condvar, Mutex, MutexGuard};
#[cfg(all(target_os = "linux", feature = "cuda"))]
pub(crate) use priority::step_back;
