//! A worker.

use super::{crew::Crew, epochs::Work, shared::Pipeline};
use crate::{
    fault::{catch, during},
    vocabulary::{Place, Stage},
};
use std::sync::Arc;

/// A worker: opens batches, fills rows.
pub(crate) fn work<O>(crew: &Arc<Crew<O>>, worker: usize) {
    #[cfg(all(feature = "cuda", target_os = "linux"))]
    if crew.flow.steps_back {
        crate::device::step_back();
    }
    while let Some(work) = crew.work(worker) {
        match work {
            Work::Open(opening) => Pipeline::of(crew, Arc::clone(&opening.of)).open(opening, worker),
            Work::Task { of, batch, task } => {
                let pipeline = Pipeline::of(crew, of);
                let rows = task.rows();
                // User code is guarded where it is called. Only the `drop` of samples is left.
                let place = Place { worker: Some(worker), ..batch.place(Stage::Collate) };
                match during(place, || catch(|| task.run(worker))) {
                    Ok(done) => {
                        crew.ran(rows, done.rows_took);
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
