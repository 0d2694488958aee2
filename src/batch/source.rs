//! What the pipeline needs to know about how batches are made. The two ways are `collate_source.rs` and
//! `batcher_source.rs`.

use super::{raw::BatchPlace, samples::BatchPlan};
use crate::{
    device::{Target, Uploader},
    fault::{Bad, Error, Faults},
    memory::{Permit, Pool, Wanted},
};
use std::{sync::Arc, time::Duration};

/// A batch whose rows are written, on its way to the device. It knows its next step. A batch that needs another step,
/// such as decoding on the device, says so here, and the pipeline has a stage for that step.
pub(crate) trait Filled<O>: Send {
    /// Which batch it is.
    fn at(&self) -> BatchPlace;

    /// Whether it must go through [`pin`](Self::pin) before it can be sent.
    fn needs_pin(&self) -> bool;

    /// Prepares it for the link: closes the gaps of padded rows, packs pageable tensors. Runs on the pin thread, or on
    /// a worker on a CPU backend.
    fn pin(self: Box<Self>, pool: &Arc<Pool>, wanted: Wanted<'_>) -> Result<Box<dyn Filled<O>>, Error>;

    /// Hands it to the device. Runs on a transfer thread, or on a worker on a CPU backend.
    fn send(self: Box<Self>, pool: &Arc<Pool>, uploader: &mut Uploader) -> Result<Ready<O>, Error>;
}

/// The result of a batch on the workers.
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

/// What a task returns.
pub(crate) struct Done<O> {
    /// The batch, from the last of its tasks to end.
    pub(crate) outcome: Option<Outcome<O>>,
    /// The time that the rows took, without the work on the batch as a whole.
    pub(crate) rows_took: Duration,
    /// Comes with the batch: those of its samples that were skipped or replaced.
    pub(crate) bad: Bad,
}

/// Makes batches from indices.
pub(crate) trait Source<O>: Send + Sync {
    fn target(&self) -> &Target;

    /// What is done about faults.
    fn faults(&self) -> &Faults;

    /// The bytes of a batch's slot, if they are known ahead.
    fn slot_bytes(&self) -> Option<usize>;

    /// Cuts a batch into tasks of at most `chunk` rows. Runs on a worker.
    fn open(
        self: Arc<Self>,
        plan: Arc<BatchPlan>,
        permit: Permit,
        pool: &Arc<Pool>,
        wanted: Wanted<'_>,
        chunk: usize,
    ) -> Result<Vec<Box<dyn Task<O>>>, Error>;
}
