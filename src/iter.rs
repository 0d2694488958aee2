//! One epoch, as Burn's training loops see it.

use crate::{
    epoch::RunId, error::Error, order::EpochProgress, pipeline::Pipeline, source::Ready, state::Standing,
    stats::step::StepClock,
};
use burn::data::{
    dataloader::{DataLoaderIterator, Progress},
    dataset::DatasetError,
};
use std::sync::Arc;

/// The batches of one epoch, in order. Dropping it early stops the work on the rest.
pub(crate) struct EpochIter<O> {
    /// `Err` if the threads could not be started; yielded once.
    run: Result<(Arc<Pipeline<O>>, RunId), Option<Error>>,
    progress: EpochProgress,
    standing: Standing,
    clock: StepClock,
}

impl<O> EpochIter<O> {
    pub(crate) fn new(
        run: Result<(Arc<Pipeline<O>>, RunId), Error>,
        progress: EpochProgress,
        standing: Standing,
        clock: StepClock,
    ) -> Self {
        Self { run: run.map_err(Some), progress, standing, clock }
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
            handed = Some(items);
            Ok(batch)
        });
        self.progress.given(handed.unwrap_or(0));
        self.standing.set(self.progress.at());
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
        Progress::new(self.progress.items, self.progress.items_total, Some("items".into()))
    }
}

impl<O> Drop for EpochIter<O> {
    fn drop(&mut self) {
        if let Ok((pipeline, id)) = &self.run {
            pipeline.end(*id);
        }
    }
}
