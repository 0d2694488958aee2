//! What the pipeline needs to know of how batches are made; `rows.rs` and `items.rs` are the two ways.

use super::{
    raw::{BatchPlace, RawBatch},
    samples::BatchPlan,
};
use crate::{
    device::{Target, Uploader},
    fault::{Bad, Error, Faults},
    memory::{Permit, Pool, Slot, Wanted},
};
use std::{any::Any, sync::Arc, time::Duration};

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
    /// All of its samples are skipped.
    Empty,
}

impl<O> Filled<O> {
    /// Which batch it is, if it is one.
    pub(crate) fn at(&self) -> Option<BatchPlace> {
        match self {
            Self::Rows { plan, .. } | Self::Made { plan, .. } | Self::Packed { plan, .. } => Some(plan.at),
            Self::Failed(_) | Self::Empty => None,
        }
    }
}

/// A batch that the consumer may have.
pub(crate) enum Ready<O> {
    /// Tensors on the device, to be finished on the consumer's thread.
    Raw(RawBatch),
    /// The user's batch. On a CPU backend it keeps its permit until it is delivered.
    Done { batch: O, items: usize, permit: Option<Permit> },
    /// Nothing: all of its samples are skipped.
    Empty,
}

/// Some rows of a batch, for one worker.
pub(crate) trait Task<O>: Send {
    fn rows(&self) -> usize;
    /// Does the work.
    fn run(self: Box<Self>, worker: usize) -> Done<O>;
}

/// What a task gives back.
pub(crate) struct Done<O> {
    /// The batch, from the last of its tasks to end.
    pub(crate) filled: Option<Filled<O>>,
    /// What the rows took, without the work on the batch as a whole.
    pub(crate) rows_took: Duration,
    /// With the batch: those of its samples that were skipped or replaced.
    pub(crate) bad: Bad,
}

/// Makes batches of indices.
pub(crate) trait Source<O>: Send + Sync {
    fn target(&self) -> &Target;

    /// What is done about faults.
    fn faults(&self) -> &Faults;

    /// The bytes of a batch's slot, where they are known ahead.
    fn slot_bytes(&self) -> Option<usize>;

    /// Cuts a batch into tasks of at most `chunk` rows. On a worker.
    fn open(
        self: Arc<Self>,
        plan: Arc<BatchPlan>,
        permit: Permit,
        pool: &Arc<Pool>,
        wanted: Wanted<'_>,
        chunk: usize,
    ) -> Result<Vec<Box<dyn Task<O>>>, Error>;

    /// Whether filled batches go through [`pin`](Self::pin).
    fn needs_pin(&self) -> bool;

    /// Prepares a filled batch for the link: closes the gaps of padded rows, packs pageable tensors. On the pin thread, or
    /// a worker on a CPU backend.
    fn pin(&self, filled: Filled<O>, pool: &Arc<Pool>, wanted: Wanted<'_>) -> Result<Filled<O>, Error>;

    /// Hands a batch to the device. On a transfer thread, or a worker on a CPU backend.
    fn send(&self, filled: Filled<O>, pool: &Arc<Pool>, uploader: &mut Uploader) -> Result<Ready<O>, Error>;

    /// Makes the user's batch. On the consumer's thread, or a worker on a CPU backend.
    fn finish(&self, batch: RawBatch) -> Result<O, Error>;
}
