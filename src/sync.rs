//! What threads share: the locks and conditions of the pool and of the pipeline, and the cores (`priority`).
//!
//! The locks are those of `parking_lot`, whose conditions ask the kernel to wake a thread only if one waits. With the cfg
//! `burn_pinned_loom` they are those of loom, which runs a test through every order of its threads' steps; see `tests/locks`.
//! `.ci/loom` runs the models, `memory/pool/model.rs` and `pipeline/pipeline/model.rs`.

#[cfg(all(target_os = "linux", feature = "cuda"))]
mod priority;

#[cfg(all(test, burn_pinned_loom))]
pub(crate) use burn_pinned_locks::{Condvar, Mutex, MutexGuard, explore};
#[cfg(not(all(test, burn_pinned_loom)))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(all(target_os = "linux", feature = "cuda"))]
pub(crate) use priority::step_back;
