//! One epoch, as Burn's training loops see it.

use super::state::EpochPosition;
use crate::{
    batch::{Finished, Ready},
    fault::{Error, Faults, Tally},
    observe::StepClock,
    order::EpochProgress,
    pipeline::{Delivery, Pipeline, RunId},
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
    standing: EpochPosition,
    clock: StepClock,
    faults: Faults,
    tally: Tally,
}

impl<O> EpochIter<O> {
    pub(crate) fn new(
        run: Result<(Arc<Pipeline<O>>, RunId), Error>,
        progress: EpochProgress,
        standing: EpochPosition,
        clock: StepClock,
        faults: Faults,
    ) -> Self {
        let tally = Tally::new(faults.policy.quota(progress.items_total), progress.skipped);
        Self { run: run.map_err(Some), progress, standing, clock, faults, tally }
    }

    fn advance(&mut self) -> Option<Result<O, Error>> {
        let (pipeline, id) = match &mut self.run {
            Ok((pipeline, id)) => (Arc::clone(pipeline), *id),
            Err(error) => {
                let error = error.take()?;
                self.faults.saw(&error);
                self.clock.never_started();
                return Some(Err(error));
            }
        };
        let _entered = self.clock.entered();
        let asked = self.clock.asked();
        let (number, waited, as_chosen, batch) = loop {
            let Some(delivery) = pipeline.next(id, asked) else {
                self.clock.ended();
                return None;
            };
            let Delivery { place, waited, as_chosen, .. } = delivery;
            let taken = self.take(&pipeline, delivery);
            self.standing.set(self.progress.at());
            // A batch whose samples are all skipped is passed over.
            if let Some(taken) = taken.transpose() {
                break (place.batch, waited, as_chosen, taken);
            }
        };
        let stepped = self.clock.handed(asked, number, batch.as_ref().ok().map(|(_, items)| *items));
        pipeline.handed(self.clock.copy(), waited, stepped, as_chosen);
        let batch = batch.map(|(batch, _)| batch);
        Some(batch)
    }

    /// Makes the user's batch from what the pipeline delivers; returns it with the number of its samples.
    fn take(&mut self, pipeline: &Pipeline<O>, delivery: Delivery<O>) -> Result<Option<(O, usize)>, Error> {
        let Delivery { place, ready, skips, .. } = delivery;
        let (skipped, replaced) = (skips.skipped.len(), skips.replaced.len());
        let saw = |error: &Error| self.faults.saw(error);
        let tallied = ready.and_then(|ready| self.tally.add(place, skips).inspect_err(saw).map(|()| ready));
        let taken = tallied.and_then(|ready| match ready {
            Ready::Finished(finished) => Ok(Some(finished)),
            Ready::Raw(raw) => raw.finish().inspect_err(saw).map(Some),
            // The other processes have a batch here, and may wait for this one in a collective operation.
            Ready::Empty if self.progress.is_shared() => Err(Error::AllSkipped { place, skipped }).inspect_err(saw),
            Ready::Empty => Ok(None),
        });
        let items = match &taken {
            Ok(finished) => {
                pipeline.counters().made_do(skipped, replaced);
                finished.as_ref().map_or(0, |finished| finished.items) + skipped
            }
            Err(_) => 0,
        };
        self.progress.given(items, self.tally.skipped());
        Ok(taken?.map(|Finished { batch, items, permit }| {
            drop(permit); // the batch is the consumer's now
            (batch, items)
        }))
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
            pipeline.rest();
        }
    }
}
