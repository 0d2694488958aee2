//! The locks and conditions of the pool and of the pipeline.
//!
//! `locks` has std's locks, and all code uses those but what the models test: the pool and the pipeline. With the cfg
//! `burn_pinned_loom` theirs are those of loom, which runs a test through every order of its threads' steps; see `tests/locks`.
//! `.ci/loom` runs the models, `memory/pool/model.rs` and `pipeline/pipeline/model.rs`.

pub(crate) use burn_shards::for_loader::locks;

#[cfg(all(test, burn_pinned_loom))]
pub(crate) use burn_pinned_locks::{Condvar, Mutex, MutexGuard, explore};
#[cfg(not(all(test, burn_pinned_loom)))]
pub(crate) use locks::{Condvar, Mutex, MutexGuard};
