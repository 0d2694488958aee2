//! A worker.

use super::{epochs::Work, shared::Pipeline};
use crate::{
    fault::{catch, during},
    vocabulary::{Place, Stage},
};

/// A worker: opens batches, fills rows.
pub(crate) fn work<O>(pipeline: &Pipeline<O>, worker: usize) {
    #[cfg(all(feature = "cuda", target_os = "linux"))]
    if !pipeline.flow.is_host() {
        crate::device::step_back();
    }
    while let Some(work) = pipeline.work(worker) {
        match work {
            Work::Open => pipeline.open(worker),
            Work::Task { batch, task } => {
                let rows = task.rows();
                // User code is guarded where it is called. Only the `drop` of samples is left.
                let place = Place { worker: Some(worker), ..batch.place(Stage::Collate) };
                match during(place, || catch(|| task.run(worker))) {
                    Ok(done) => {
                        pipeline.ran(rows, done.rows_took);
                        if let Some(outcome) = done.outcome {
                            pipeline.filled(batch, outcome, done.skips);
                        }
                    }
                    Err(caught) => pipeline.broke(batch, worker, caught),
                }
            }
        }
    }
}
