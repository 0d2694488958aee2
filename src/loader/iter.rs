//! One epoch, as Burn's training loops see it.

use super::state::EpochPosition;
use crate::{
    batch::{Finished, Ready},
    fault::{Error, Faults, Tally},
    observe::StepClock,
    order::{EpochProgress, Guard},
    pipeline::{Delivery, EpochId, Pipeline, Threads},
    vocabulary::Stage,
};
use burn::data::{
    dataloader::{DataLoaderIterator, Progress},
    dataset::DatasetError,
};
use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// The batches of one epoch, in order. At its end, or when it is dropped early, the work on the rest stops.
pub(crate) struct EpochIter<O: Send + 'static> {
    /// The epoch in progress. `Err` if it has ended, or with the error that kept it from starting.
    run: Result<(Arc<Threads<O>>, EpochId), Option<Error>>,
    /// How far the batches have been taken that the consumer has.
    progress: EpochProgress,
    /// How far batches have been taken from the pipeline.
    taken: EpochProgress,
    /// A batch that was taken ahead, to know whether the one before it was the last.
    kept: Option<Taken<O>>,
    standing: EpochPosition,
    clock: StepClock,
    faults: Faults,
    tally: Tally,
    /// Samples are fetched ahead as long as these are there.
    guards: Vec<Guard>,
}

/// A batch for the consumer, with the number of its samples, or the error at its place.
struct Taken<O> {
    number: usize,
    batch: Result<(O, usize), Error>,
    /// How long the consumer waited for it.
    waited: Duration,
    /// How far the epoch is with it.
    progress: EpochProgress,
}

impl<O: Send + 'static> EpochIter<O> {
    pub(crate) fn new(
        run: Result<(Arc<Threads<O>>, EpochId), Error>,
        progress: EpochProgress,
        standing: EpochPosition,
        clock: StepClock,
        faults: Faults,
        guards: Vec<Guard>,
    ) -> Self {
        let tally = Tally::new(faults.policy.quota(progress.items_total), progress.skipped);
        let taken = progress.clone();
        Self { run: run.map_err(Some), progress, taken, kept: None, standing, clock, faults, tally, guards }
    }

    fn advance(&mut self) -> Option<Result<O, Error>> {
        let threads = match &mut self.run {
            Ok((threads, _)) => Arc::clone(threads),
            Err(error) => {
                let error = error.take()?;
                self.faults.saw(&error);
                self.clock.never_started();
                return Some(Err(error));
            }
        };
        let _entered = self.clock.entered();
        let asked = self.clock.asked();
        let Some(mut given) = self.kept.take().or_else(|| self.pull()) else {
            self.clock.ended();
            self.end();
            return None;
        };
        // If all samples that are left may be skipped, this batch may be the last. Its progress must say so.
        if !self.taken.is_shared() && (1..=self.tally.left()).contains(&self.taken.least_left()) {
            self.kept = self.pull();
            match &self.kept {
                Some(kept) => given.waited += kept.waited,
                None => given.progress = self.taken.clone(),
            }
        }
        let Taken { number, batch, waited, progress } = given;
        self.standing.set(progress.at());
        self.progress = progress;
        let stepped = self.clock.handed(asked, number, batch.as_ref().ok().map(|(_, items)| *items));
        threads.handed(waited, stepped);
        Some(batch.map(|(batch, _)| batch))
    }

    /// Takes the next batch that is not skipped whole; returns `None` at the epoch's end.
    fn pull(&mut self) -> Option<Taken<O>> {
        let (threads, id) = self.run.as_ref().map(|(threads, id)| (Arc::clone(threads), *id)).ok()?;
        let mut waits = Duration::ZERO;
        loop {
            // Each wait has a clock of its own, which `timeout` is compared with.
            let delivery = threads.pipeline().next(id, Instant::now())?;
            let number = delivery.batch.key.number;
            waits += delivery.waited;
            if let Some(batch) = self.take(threads.pipeline(), delivery).transpose() {
                return Some(Taken { number, batch, waited: waits, progress: self.taken.clone() });
            }
        }
    }

    /// Ends the epoch: it holds nothing any more, and new threads may take the place of those that hang.
    fn end(&mut self) {
        if let Ok((threads, id)) = mem::replace(&mut self.run, Err(None)) {
            threads.pipeline().end(id);
            threads.pipeline().rest();
        }
        self.guards.clear();
    }

    /// Makes the user's batch from what the pipeline delivers; returns it with the number of its samples.
    fn take(&mut self, pipeline: &Pipeline<O>, delivery: Delivery<O>) -> Result<Option<(O, usize)>, Error> {
        let Delivery { batch, ready, skips, .. } = delivery;
        let place = batch.place(Stage::Read);
        let (skipped, replaced) = (skips.skipped.len(), skips.replaced.len());
        let saw = |error: &Error| self.faults.saw(error);
        let tallied = ready.and_then(|ready| self.tally.add(place, skips).inspect_err(saw).map(|()| ready));
        let taken = tallied.and_then(|ready| match ready {
            Ready::Finished(finished) => Ok(Some(finished)),
            Ready::Raw(raw) => raw.finish().inspect_err(saw).map(Some),
            // The other processes have a batch here, and may wait for this one in a collective operation.
            Ready::Empty if self.taken.is_shared() => Err(Error::AllSkipped { place, skipped }).inspect_err(saw),
            Ready::Empty => Ok(None),
        });
        let items = match &taken {
            Ok(finished) => {
                pipeline.counters().made_do(skipped, replaced);
                finished.as_ref().map_or(0, |finished| finished.items) + skipped
            }
            Err(_) => 0,
        };
        if let Err(Error::Timeout { .. } | Error::LeaseTimeout { .. } | Error::Ended) = &taken {
            self.taken.breaks_off();
        }
        self.taken.given(items, self.tally.skipped());
        Ok(taken?.map(|Finished { batch, items, permit }| {
            drop(permit); // the batch is the consumer's now
            (batch, items)
        }))
    }
}

impl<O: Send + 'static> Iterator for EpochIter<O> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.advance()?.map_err(DatasetError::new))
    }
}

impl<O: Send + 'static> DataLoaderIterator<O> for EpochIter<O> {
    fn progress(&self) -> Progress {
        let (items, total) = self.progress.items();
        Progress::new(items, total, Some("items".into()))
    }
}

impl<O: Send + 'static> Drop for EpochIter<O> {
    fn drop(&mut self) {
        self.end();
    }
}
