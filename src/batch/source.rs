//! The traits by which the pipeline makes batches. The two ways are `rows_task.rs` and `items_task.rs`.

use super::{next::Next, samples::BatchPlan};
use crate::{
    device::{Common, Target, Transport},
    fault::{BoxError, Error, Faults, Skips},
    memory::{Permit, Pool, Wait},
    observe::TaskClock,
};
use std::sync::Arc;

/// Some rows of a batch, for one worker.
pub(crate) trait Task<O>: Send {
    fn rows(&self) -> usize;

    /// Does the work. Stops the clock when the rows are done, before the work on the batch as a whole. The last task of a
    /// batch to end returns the batch, with those of its samples that were skipped or replaced. An error was reported
    /// where it happened.
    fn run(self: Box<Self>, clock: &mut TaskClock<'_>) -> Option<(Result<Next<O>, Error>, Skips)>;
}

/// Makes batches from indices.
pub(crate) trait Source<O>: Send + Sync {
    fn target(&self) -> &Target;

    /// This source, for a device.
    ///
    /// # Errors
    /// If an option cannot be had there.
    fn on(&self, target: Target) -> Result<Arc<dyn Source<O>>, Error>;

    /// Opens a way to copy batches to the device, for the calling transfer thread.
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
