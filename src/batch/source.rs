//! What the pipeline needs to know of how batches are made; `rows.rs` and `items.rs` are the two ways.

use super::{raw::BatchPlace, samples::BatchPlan};
use crate::{
    device::{Target, Uploader},
    fault::{Bad, Error, Faults},
    memory::{Permit, Pool, Wanted},
};
use std::{sync::Arc, time::Duration};

/// A batch whose rows are written, on its way to the device. It knows its next step: a batch that needs another one, such as
/// decoding on the device, says so here, and the pipeline has a stage for it.
pub(crate) trait Filled<O>: Send {
    /// Which batch it is.
    fn at(&self) -> BatchPlace;

    /// Whether it is to go through [`pin`](Self::pin) before it can be sent.
    fn needs_pin(&self) -> bool;

    /// Prepares it for the link: closes the gaps of padded rows, packs pageable tensors. On the pin thread, or a worker on a CPU
    /// backend.
    fn pin(self: Box<Self>, pool: &Arc<Pool>, wanted: Wanted<'_>) -> Result<Box<dyn Filled<O>>, Error>;

    /// Hands it to the device. On a transfer thread, or a worker on a CPU backend.
    fn send(self: Box<Self>, pool: &Arc<Pool>, uploader: &mut Uploader) -> Result<Ready<O>, Error>;
}

/// What came of a batch on the workers.
pub(crate) enum Outcome<O> {
    /// The batch.
    Filled(Box<dyn Filled<O>>),
    /// Something failed; the error takes the batch's place.
    Failed(Error),
    /// All of its samples are skipped.
    Empty,
}

/// A batch that the consumer may have.
pub(crate) enum Ready<O> {
    /// Tensors on the device, to be finished on the consumer's thread.
    Raw(Box<dyn Raw<O>>),
    /// The user's batch. On a CPU backend it keeps its permit until it is delivered.
    Done { batch: O, items: usize, permit: Option<Permit> },
    /// Nothing: all of its samples are skipped.
    Empty,
}

/// A batch on the device that is not the user's yet.
pub(crate) trait Raw<O>: Send {
    /// The number of its samples.
    fn items(&self) -> usize;

    /// Makes the user's batch.
    fn finish(self: Box<Self>) -> Result<O, Error>;
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
    pub(crate) outcome: Option<Outcome<O>>,
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
}
