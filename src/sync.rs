//! The locks and conditions of the pool and of the pipeline.
//!
//! `locks` has std's locks. All code uses them, except the pool and the pipeline when models test them: with the cfg `burn_pinned_loom`
//! these two use loom's locks. Loom runs a test through every order of its threads' steps; see `tests/locks`. `.ci/loom` runs the models,
//! `memory/pool/model.rs` and `pipeline/pipeline/model.rs`.

pub(crate) use burn_shards::for_loader::locks;

#[cfg(all(test, burn_pinned_loom))]
pub(crate) use burn_pinned_locks::{Condvar, Mutex, MutexGuard, explore};
#[cfg(not(all(test, burn_pinned_loom)))]
pub(crate) use locks::{Condvar, Mutex, MutexGuard};
