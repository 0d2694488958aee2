//! The pin thread: prepares batches for the link, if they need it.

use super::{
    run::{BatchId, Run},
    shared::Pipeline,
};
use crate::{
    batch::{Next, Step, ToPin},
    fault::{Error, during},
    observe::Entered,
    vocabulary::{BatchKey, Place, Stage},
};
use std::time::Instant;

/// The pin thread: allocates memory ahead of its use, then works on batches that need it before they can cross the
/// link.
pub(crate) fn run<O>(pipeline: &Pipeline<O>) {
    if let Some(bytes) = pipeline.source.slot_bytes() {
        during(Place::batch(Stage::SlotWait, BatchKey::NONE), || pipeline.pool.preallocate(bytes));
    }
    while let Some((batch, filled)) = pipeline.to_pin() {
        pipeline.pass(batch, pipeline.pin(batch, filled));
    }
}

impl<O> Pipeline<O> {
    /// Waits for a batch to prepare; returns `None` when the pipeline is closed.
    pub(crate) fn to_pin(&self) -> Option<(BatchId, Box<dyn ToPin<O>>)> {
        self.wait_for(Step::Pin, Run::take_to_pin)
    }

    /// Prepares a batch for the link.
    pub(super) fn pin(&self, batch: BatchId, filled: Box<dyn ToPin<O>>) -> Result<Next<O>, Error> {
        let _entered = Entered::new(Stage::Pin, batch.key);
        let (pinned, start) = self.with_slot(batch, Run::next_in_pin, |patience| filled.pin(&self.pool, patience));
        self.counters().took(Stage::Pin, batch.key, start, Instant::now());
        pinned
    }
}

impl<O> Run<O> {
    /// Takes the next batch for the pin thread. It works in order, because a batch that waits there for memory must not
    /// hold up the one that the consumer needs first. Batches that failed on the way are skipped.
    fn take_to_pin(&mut self) -> Option<(BatchId, Box<dyn ToPin<O>>)> {
        let mut next = self.pinned.max(self.delivered);
        while self.ready.contains_key(&next) {
            next += 1;
        }
        let filled = self.queues.to_pin.remove(&next)?;
        self.pinned = next + 1;
        Some((self.batch(next), filled))
    }

    /// Whether the consumer's next batch is the one on the pin thread.
    fn next_in_pin(&self) -> bool {
        self.pinned == self.delivered + 1
    }
}
