//! The pin thread: prepares batches for the link, if they need it. A CPU backend has none.

use super::{
    pipeline::Pipeline,
    state::{BatchId, State},
};
use crate::{
    batch::{Filled, Next, Queue},
    fault::{Error, during},
    observe::Entered,
    vocabulary::{BatchKey, Place, Stage},
};
use std::{sync::atomic::AtomicBool, time::Instant};

/// The pin thread: allocates memory ahead of its use, then works on batches that need it before they can cross the
/// link.
pub(super) fn run<O>(pipeline: &Pipeline<O>) {
    if let Some(bytes) = pipeline.source.slot_bytes() {
        during(Place::batch(Stage::SlotWait, BatchKey::NONE), || pipeline.pool.preallocate(bytes));
    }
    while let Some((batch, filled, abandoned)) = pipeline.wait_for(Queue::Pin, State::take_to_pin) {
        pipeline.pass(batch, pipeline.pin(batch, filled, &abandoned).map(Next::Send));
    }
}

impl<O> Pipeline<O> {
    /// Prepares a batch for the link.
    pub(super) fn pin(
        &self,
        batch: BatchId,
        filled: Box<dyn Filled<O>>,
        abandoned: &AtomicBool,
    ) -> Result<Box<dyn Filled<O>>, Error> {
        let _entered = Entered::new(Stage::Pin, batch.key);
        let (pinned, start) = self.with_slot(batch, abandoned, |wait| filled.pin(&self.pool, wait));
        self.counters().took(Stage::Pin, batch.key, start, Instant::now());
        pinned
    }
}
