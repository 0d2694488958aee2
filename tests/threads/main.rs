//! Threads, calls that hang, panics, logs: tests that look at this process as a whole, or change what belongs to it.
//!
//! Each holds `common::ALONE` while it has a loader, or runs what disturbs others in a process of its own.

mod callbacks;
#[path = "../common/mod.rs"]
mod common;
mod copies;
mod ends;
mod fault_matrix;
mod kept_memory;
mod panics;
mod said;
mod shutdown;
mod sites;
mod soak;
mod uneven;
mod watchdog;

use burn_pinned_made::apart;
