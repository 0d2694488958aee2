//! The pin thread.

use super::shared::Pipeline;
use crate::{
    fault::during,
    vocabulary::{Place, Stage},
};

/// The pin thread: allocates memory ahead of its use, then works on batches that need it before they can cross the
/// link.
pub(crate) fn pin<O>(pipeline: &Pipeline<O>) {
    if let Some(bytes) = pipeline.source.slot_bytes() {
        during(Place::batch(Stage::SlotWait, 0, 0), || pipeline.pool.preallocate(bytes));
    }
    while let Some((run, number, filled)) = pipeline.to_pin() {
        pipeline.pinned(run, number, pipeline.pin(run, filled));
    }
}
