//! What the pipeline needs to know about how batches are made. The two ways are `collate_source.rs` and
//! `batcher_source.rs`.

use super::samples::BatchPlan;
use crate::{
    device::{Target, Uploader},
    fault::{Error, Faults, Skips},
    memory::{Patience, Permit, Pool},
};
use std::{sync::Arc, time::Duration};

/// What comes next for a batch that has left the workers. Each step takes the batch and returns the next. A step that is
/// new, such as decoding on the device, is a trait and a variant here; `pipeline/steps.rs` has its queue and its threads.
pub(crate) enum Next<O> {
    /// It must be prepared for the link.
    Pin(Box<dyn ToPin<O>>),
    /// Its bytes may go to the device.
    Send(Box<dyn ToSend<O>>),
    /// Its tensors are on the device.
    Finish(Box<dyn ToFinish<O>>),
    /// The consumer may have it.
    Ready(Ready<O>),
}

/// A batch whose rows or tensors do not lie as the link wants them.
pub(crate) trait ToPin<O>: Send {
    /// Closes the gaps of padded rows, or packs pageable tensors. Runs on the pin thread, or on a worker on a CPU
    /// backend.
    fn pin(self: Box<Self>, pool: &Arc<Pool>, patience: Patience<'_>) -> Result<Next<O>, Error>;
}

/// A batch whose bytes may go to the device.
pub(crate) trait ToSend<O>: Send {
    /// Hands it to the device. Runs on a transfer thread, or on a worker on a CPU backend.
    fn send(self: Box<Self>, pool: &Arc<Pool>, uploader: &mut Uploader) -> Result<Next<O>, Error>;
}

/// A batch on the device that is not the user's yet.
pub(crate) trait ToFinish<O>: Send {
    /// Makes the user's batch. Runs on the consumer's thread, or on a worker on a CPU backend.
    fn finish(self: Box<Self>) -> Result<Finished<O>, Error>;
}

/// The user's batch.
pub(crate) struct Finished<O> {
    pub(crate) batch: O,
    /// The number of its samples.
    pub(crate) items: usize,
    /// On a CPU backend it keeps its permit until it is delivered.
    pub(crate) permit: Option<Permit>,
}

/// A batch that the consumer may have.
pub(crate) enum Ready<O> {
    /// Tensors on the device, to be finished on the consumer's thread.
    Raw(Box<dyn ToFinish<O>>),
    Finished(Finished<O>),
    /// Nothing: all of its samples are skipped.
    Empty,
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
    /// An error has been reported where it happened.
    pub(crate) outcome: Option<Result<Next<O>, Error>>,
    /// The time that the rows took, without the work on the batch as a whole.
    pub(crate) rows_took: Duration,
    /// Comes with the batch: those of its samples that were skipped or replaced.
    pub(crate) skips: Skips,
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
        patience: Patience<'_>,
        chunk: usize,
    ) -> Result<Vec<Box<dyn Task<O>>>, Error>;
}
