//! One epoch, as Burn's training loops see it.

use super::{
    batches::{Batches, Given},
    state::EpochPosition,
};
use crate::{
    batch::{Finished, Ready},
    fault::{Error, Faults, Tally},
    observe::StepClock,
    order::EpochProgress,
    vocabulary::{Place, Stage},
};
use burn::data::{
    dataloader::{DataLoaderIterator, Progress},
    dataset::DatasetError,
};
use std::time::Duration;

/// The batches of one epoch, in order. At its end, or when it is dropped early, the work on the rest stops.
pub(crate) struct EpochIter<O> {
    /// The epoch in progress. `Err` if it has ended, or with the error that kept it from starting.
    run: Result<Box<dyn Batches<O>>, Option<Error>>,
    /// How far the batches have been taken that the consumer has.
    progress: EpochProgress,
    /// How far batches have been taken from where they come from.
    taken: EpochProgress,
    /// A batch that was taken ahead, to know whether the one before it was the last.
    ahead: Option<Taken<O>>,
    standing: EpochPosition,
    clock: StepClock,
    faults: Faults,
    tally: Tally,
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

impl<O> EpochIter<O> {
    pub(super) fn new(
        run: Result<Box<dyn Batches<O>>, Error>,
        progress: EpochProgress,
        standing: EpochPosition,
        clock: StepClock,
        faults: Faults,
    ) -> Self {
        let tally = Tally::new(faults.policy.quota(progress.items_total), progress.skipped);
        let taken = progress.clone();
        Self { run: run.map_err(Some), progress, taken, ahead: None, standing, clock, faults, tally }
    }

    fn advance(&mut self) -> Option<Result<O, Error>> {
        if let Err(error) = &mut self.run {
            let error = error.take()?;
            self.faults.saw(&error);
            self.faults.counters.failed();
            return Some(Err(error));
        }
        let _entered = self.clock.entered();
        let asked = self.clock.asked();
        let Some(mut given) = self.ahead.take().or_else(|| self.pull()) else {
            self.clock.ended();
            self.run = Err(None);
            return None;
        };
        // If all samples that are left may be skipped, this batch may be the last. Its progress must say so.
        if !self.taken.is_shared() && (1..=self.tally.left()).contains(&self.taken.least_left()) {
            self.ahead = self.pull();
            match &self.ahead {
                Some(next) => given.waited += next.waited,
                None => given.progress = self.taken.clone(),
            }
        }
        let Taken { number, batch, waited, progress } = given;
        self.standing.set(progress.at());
        self.progress = progress;
        let stepped = self.clock.handed(asked, number, batch.as_ref().ok().map(|(_, items)| *items));
        if let Ok(batches) = &self.run {
            batches.handed(waited, stepped);
        }
        Some(batch.map(|(batch, _)| batch))
    }

    /// Takes the next batch that is not skipped whole; returns `None` at the epoch's end.
    fn pull(&mut self) -> Option<Taken<O>> {
        let mut waits = Duration::ZERO;
        loop {
            let given = self.run.as_mut().ok()?.next()?;
            let number = given.key.number;
            waits += given.waited;
            if let Some(batch) = self.take(given).transpose() {
                return Some(Taken { number, batch, waited: waits, progress: self.taken.clone() });
            }
        }
    }

    /// Makes the user's batch from what is given; returns it with the number of its samples.
    fn take(&mut self, given: Given<O>) -> Result<Option<(O, usize)>, Error> {
        let Given { key, ready, skips, .. } = given;
        let place = Place::batch(Stage::Read, key);
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
                self.faults.counters.made_do(skipped, replaced);
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

impl<O> Iterator for EpochIter<O> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.advance()?.map_err(DatasetError::new))
    }
}

impl<O> DataLoaderIterator<O> for EpochIter<O> {
    fn progress(&self) -> Progress {
        let (items, total) = self.progress.items();
        Progress::new(items, total, Some("items".into()))
    }
}
