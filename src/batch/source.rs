//! What the pipeline needs to know about how batches are made. The two ways are `collate_source.rs` and
//! `batcher_source.rs`.

use super::{next::Next, samples::BatchPlan};
use crate::{
    device::{Common, Target, Transport},
    fault::{BoxError, Error, Faults, Skips},
    memory::{Permit, Pool, Wait},
};
use std::{sync::Arc, time::Duration};

/// Some rows of a batch, for one worker.
pub(crate) trait Task<O>: Send {
    fn rows(&self) -> usize;
    /// Does the work.
    fn run(self: Box<Self>, worker: usize) -> Done<O>;
}

/// The result of a batch on the workers. An error has been reported where it happened.
pub(crate) type Outcome<O> = Result<Next<O>, Error>;

/// What a task returns.
pub(crate) struct Done<O> {
    /// The batch, from the last of its tasks to end.
    pub(crate) outcome: Option<Outcome<O>>,
    /// The time that the rows took, without the work on the batch as a whole.
    pub(crate) rows_took: Duration,
    /// Comes with the batch: those of its samples that were skipped or replaced.
    pub(crate) skips: Skips,
}

/// Makes batches from indices.
pub(crate) trait Source<O>: Send + Sync {
    fn target(&self) -> &Target;

    /// Opens what copies its batches to the device, for the calling transfer thread.
    fn transport(&self, common: &Common) -> Result<Box<dyn Transport>, BoxError> {
        self.target().transport(common)
    }

    /// What is done about faults.
    fn faults(&self) -> &Faults;

    /// The bytes of a batch's slot, if they are known ahead.
    fn slot_bytes(&self) -> Option<usize>;

    /// Whether the samples of a batch may take very different times, as images do.
    fn is_uneven(&self) -> bool;

    /// Cuts a batch into tasks of at most `chunk` rows. Runs on a worker.
    fn open(
        self: Arc<Self>,
        plan: Arc<BatchPlan>,
        permit: Permit,
        pool: &Arc<Pool>,
        wait: &Wait<'_>,
        chunk: usize,
    ) -> Result<Vec<Box<dyn Task<O>>>, Error>;
}
