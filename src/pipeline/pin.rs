//! The pin thread: prepares batches for the link, if they need it. A CPU backend has none.

use super::{pipeline::Pipeline, state::State};
use crate::{
    batch::Queue,
    fault::during,
    vocabulary::{BatchKey, Place, Stage},
};

/// The pin thread: allocates memory in advance, then prepares the batches that need it before they are copied to the
/// device.
pub(super) fn run<O>(pipeline: &Pipeline<O>) {
    if let Some(bytes) = pipeline.source.slot_bytes() {
        during(Place::batch(Stage::SlotWait, BatchKey::NONE), || pipeline.pool.preallocate(bytes));
    }
    while let Some((batch, abandoned)) = pipeline.wait_for(Queue::Pin, State::take_to_pin) {
        pipeline.pass(pipeline.pin(batch, &abandoned));
    }
}
