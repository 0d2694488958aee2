//! The threads of one copy of a loader, and their shared state: the epochs in progress, their batches, and the queues
//! that the threads wait on.

mod clocks;
mod consumer;
mod growth;
mod pin;
#[expect(clippy::module_inception, reason = "the pipeline itself")]
mod pipeline;
mod state;
#[cfg(all(test, feature = "vision"))]
mod tests;
mod threads;
mod transfer;
mod worker;

pub(crate) use growth::{Bounds, Growth};
pub(crate) use pipeline::{Pipeline, Settings};
pub(crate) use threads::Threads;
