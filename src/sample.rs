//! Getting one sample: dataset, then augmentation. Errors and panics of user code become typed errors here.

use crate::{
    activity::Activity,
    augment::Augment,
    batch::BatchPlace,
    error::{BoxError, Error, Place, Stage, panic_message},
    order::Occurrences,
    rng::KeyedRng,
    stats::{Counters, clock::TaskClock},
};
use burn::data::dataset::Dataset;
use std::{
    cell::Cell,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// Which samples a batch has, and where it belongs.
#[derive(Debug)]
pub(crate) struct BatchPlan {
    pub(crate) at: BatchPlace,
    pub(crate) indices: Vec<usize>,
    pub(crate) occurrences: Option<Occurrences>,
    /// Set when the consumer is gone: work on this batch may stop.
    pub(crate) abandoned: Arc<AtomicBool>,
}

impl BatchPlan {
    pub(crate) fn place(&self, stage: Stage) -> Place {
        Place::batch(stage, self.at.epoch, self.at.number)
    }

    /// The place of one sample of this batch, on a worker.
    pub(crate) fn sample(&self, position: usize, worker: usize) -> Place {
        let index = self.indices.get(position).copied();
        Place { worker: Some(worker), index, ..self.place(Stage::Dataset) }
    }
}

/// Runs user code: an error or a panic of it becomes an [`Error`] with its place.
pub(crate) fn guard<T>(place: Place, code: impl FnOnce() -> Result<T, BoxError>) -> Result<T, Error> {
    guard_at(|| place, code)
}

/// The same where the place is known only when something has gone wrong.
pub(crate) fn guard_at<T>(
    place: impl FnOnce() -> Place,
    code: impl FnOnce() -> Result<T, BoxError>,
) -> Result<T, Error> {
    // What the closure borrows may be left half done by a panic: callers drop it, or replace it.
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) => Err(Error::Failed { place: place(), source }),
        Err(payload) => Err(Error::Panicked { place: place(), message: panic_message(payload.as_ref()) }),
    }
}

/// The failure that comes first in a batch's order, whichever worker met it and when.
#[derive(Default)]
pub(crate) struct FirstFailure(Option<(usize, Error)>);

impl FirstFailure {
    /// Notes a failure at a position of the batch.
    pub(crate) fn note(&mut self, failure: (usize, Error)) {
        if self.0.as_ref().is_none_or(|(earlier, _)| failure.0 < *earlier) {
            self.0 = Some(failure);
        }
    }

    pub(crate) fn take(&mut self) -> Option<Error> {
        self.0.take().map(|(_, error)| error)
    }
}

/// The samples of a dataset, augmented.
pub(crate) struct Samples<I> {
    pub(crate) dataset: Arc<dyn Dataset<I>>,
    /// The dataset's length when the loader was built.
    pub(crate) len: usize,
    pub(crate) augment: Option<Arc<dyn Augment<I>>>,
    pub(crate) seed: u64,
    pub(crate) counters: Arc<Counters>,
}

impl<I: 'static> Samples<I> {
    /// Adds the samples at some positions of a batch to `samples`, on the calling worker, up to the first failure, which is given
    /// with its position. Stops without a word once the batch is abandoned.
    pub(crate) fn fetch(
        &self,
        plan: &BatchPlan,
        positions: Range<usize>,
        worker: usize,
        samples: &mut Vec<I>,
        clock: &mut TaskClock<'_>,
    ) -> Result<(), (usize, Error)> {
        let (at, stage) = (Cell::new(positions.start), Cell::new(Stage::Dataset));
        let place = || Place { stage: stage.get(), ..plan.sample(at.get(), worker) };
        let mut out_of_range = None;
        clock.group(self.augment.is_some());
        let fetched = guard_at(place, || {
            for position in positions {
                at.set(position);
                let index = plan.indices[position];
                if index >= self.len {
                    stage.set(Stage::Sampler);
                    out_of_range = Some(Error::IndexOutOfRange { place: place(), index, len: self.len });
                    return Ok(());
                }
                if plan.abandoned.load(Relaxed) {
                    return Ok(());
                }
                stage.set(Stage::Dataset);
                let mut sample = self.dataset.get(index)?;
                clock.sample(Activity::Read);
                if let Some(augment) = &self.augment {
                    stage.set(Stage::Augment);
                    let occurrence = plan.occurrences.map(|occurrences| occurrences.of(position));
                    sample = augment
                        .apply(sample, &mut KeyedRng::for_sample(self.seed, plan.at.epoch, index, occurrence))?;
                    clock.sample(Activity::Augment);
                }
                samples.push(sample);
            }
            Ok(())
        });
        clock.samples(Activity::Read, samples.len());
        let failed = fetched.err().or(out_of_range);
        failed.map_or(Ok(()), |error| Err((at.get(), error)))
    }
}
