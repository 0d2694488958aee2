//! One epoch, as Burn's training loops see it.

use crate::{epoch::RunId, error::Error, pipeline::Pipeline, source::Ready, stats::step::StepClock};
use burn::data::{
    dataloader::{DataLoaderIterator, Progress},
    dataset::DatasetError,
};
use std::sync::Arc;

/// The batches of one epoch, in order. Dropping it early stops the work on the rest.
pub(crate) struct EpochIter<O> {
    /// `Err` if the threads could not be started; yielded once.
    run: Result<(Arc<Pipeline<O>>, RunId), Option<Error>>,
    items_done: usize,
    items_total: usize,
    clock: StepClock,
}

impl<O> EpochIter<O> {
    pub(crate) fn new(run: Result<(Arc<Pipeline<O>>, RunId), Error>, items_total: usize, clock: StepClock) -> Self {
        Self { run: run.map_err(Some), items_done: 0, items_total, clock }
    }

    fn advance(&mut self) -> Option<Result<O, Error>> {
        let (pipeline, id) = match &mut self.run {
            Ok((pipeline, id)) => (Arc::clone(pipeline), *id),
            Err(error) => {
                let error = error.take()?;
                self.clock.never_started();
                return Some(Err(error));
            }
        };
        let _entered = self.clock.entered();
        let asked = self.clock.asked();
        let Some(ready) = pipeline.next(id) else {
            self.clock.ended();
            return None;
        };
        let mut handed = None;
        let batch = ready.and_then(|ready| {
            // A permit is given back after the batch is the consumer's, on the way out of here.
            let (batch, items, _permit) = match ready {
                Ready::Done { batch, items, permit } => (batch, items, permit),
                Ready::Raw(raw) => {
                    let items = raw.len();
                    (pipeline.source.finish(raw)?, items, None)
                }
            };
            self.items_done += items;
            handed = Some(items);
            Ok(batch)
        });
        self.clock.handed(asked, handed);
        Some(batch)
    }
}

impl<O> Iterator for EpochIter<O> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.advance()?.map_err(DatasetError::new))
    }
}

impl<O> DataLoaderIterator<O> for EpochIter<O> {
    fn progress(&self) -> Progress {
        Progress::new(self.items_done, self.items_total, Some("items".into()))
    }
}

impl<O> Drop for EpochIter<O> {
    fn drop(&mut self) {
        if let Ok((pipeline, id)) = &self.run {
            pipeline.end(*id);
        }
    }
}
