//! What the pipeline needs to know of how batches are made; `rows.rs` and `items.rs` are the two ways.

use crate::{
    batch::RawBatch,
    error::Error,
    pool::{Permit, Pool},
    sample::BatchPlan,
    slot::Slot,
};
use burn::tensor::Device;
use std::{any::Any, sync::Arc, time::Duration};

/// Where batches go.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) device: Device,
    /// The device computes in host memory: bytes are handed over without a copy, and there are no streams.
    pub(crate) host: bool,
}

/// A batch on its way from the workers to the device.
pub(crate) enum Filled<O> {
    /// All rows are written. `steps` holds the steps of every (row, field) if any field is padded.
    Rows { slot: Slot, plan: Arc<BatchPlan>, steps: Vec<usize>, longest: Vec<usize> },
    /// A Burn batcher made the user's batch on the host.
    Made { batch: O, plan: Arc<BatchPlan>, permit: Permit },
    /// The same, its tensors taken out and packed into a slot. `parts` is known to the source.
    Packed { batch: O, plan: Arc<BatchPlan>, slot: Slot, parts: Box<dyn Any + Send> },
    /// Something failed; the error takes the batch's place.
    Failed(Error),
}

/// A batch that the consumer may have.
pub(crate) enum Ready<O> {
    /// Tensors on the device, to be finished on the consumer's thread.
    Raw(RawBatch),
    /// The user's batch. On a CPU backend it keeps its permit until it is delivered.
    Done { batch: O, items: usize, permit: Option<Permit> },
}

/// Some rows of a batch, for one worker.
pub(crate) trait Task<O>: Send {
    fn rows(&self) -> usize;
    /// Does the work. The last task of a batch to end gives the batch.
    fn run(self: Box<Self>, worker: usize) -> Option<Filled<O>>;
}

/// Makes batches of indices.
pub(crate) trait Source<O>: Send + Sync {
    fn target(&self) -> &Target;

    /// The bytes of a batch's slot, where they are known ahead.
    fn slot_bytes(&self) -> Option<usize>;

    /// Cuts a batch into tasks of at most `chunk` rows. On a worker.
    fn open(
        self: Arc<Self>,
        plan: Arc<BatchPlan>,
        permit: Permit,
        pool: &Arc<Pool>,
        chunk: usize,
    ) -> Result<Vec<Box<dyn Task<O>>>, Error>;

    /// Whether filled batches go through [`pin`](Self::pin).
    fn needs_pin(&self) -> bool;

    /// Prepares a filled batch for the link: closes the gaps of padded rows, packs pageable tensors. On the pin thread.
    fn pin(&self, filled: Filled<O>, pool: &Arc<Pool>, patience: Duration) -> Result<Filled<O>, Error>;

    /// Hands a batch to the device. On a transfer thread.
    fn send(&self, filled: Filled<O>, pool: &Arc<Pool>) -> Result<Ready<O>, Error>;

    /// Makes the user's batch. On the consumer's thread, or a transfer thread on a CPU backend.
    fn finish(&self, batch: RawBatch) -> Result<O, Error>;
}
