//! Getting one sample: dataset, then augmentation. Errors and panics of user code become typed errors here.

use crate::{
    augment::Augment,
    batch::BatchPlace,
    error::{BoxError, Error, Place, Stage, panic_message},
    rng::{KeyedRng, Purpose},
};
use burn::data::dataset::Dataset;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::AtomicBool},
};

/// Which samples a batch has, and where it belongs.
#[derive(Debug)]
pub(crate) struct BatchPlan {
    pub(crate) at: BatchPlace,
    pub(crate) indices: Vec<usize>,
    /// Set when the consumer is gone: work on this batch may stop.
    pub(crate) abandoned: Arc<AtomicBool>,
}

impl BatchPlan {
    pub(crate) fn place(&self, stage: Stage) -> Place {
        Place { stage, epoch: self.at.epoch, batch: self.at.number, worker: None, index: None }
    }

    /// The place of one sample of this batch, on a worker.
    pub(crate) fn sample(&self, position: usize, worker: usize) -> Place {
        let index = self.indices.get(position).copied();
        Place { worker: Some(worker), index, ..self.place(Stage::Dataset) }
    }
}

/// Runs user code: an error or a panic of it becomes an [`Error`] with its place.
pub(crate) fn guard<T>(place: Place, code: impl FnOnce() -> Result<T, BoxError>) -> Result<T, Error> {
    // What the closure borrows may be left half done by a panic: callers drop it, or replace it.
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) => Err(Error::Failed { place, source }),
        Err(payload) => Err(Error::Panicked { place, message: panic_message(payload.as_ref()) }),
    }
}

/// The samples of a dataset, augmented.
pub(crate) struct Samples<I> {
    pub(crate) dataset: Arc<dyn Dataset<I>>,
    /// The dataset's length when the loader was built.
    pub(crate) len: usize,
    pub(crate) augment: Option<Arc<dyn Augment<I>>>,
    pub(crate) seed: u64,
}

impl<I: 'static> Samples<I> {
    /// One sample, on the calling worker.
    pub(crate) fn fetch(&self, place: Place) -> Result<I, Error> {
        let index = place.index.unwrap_or(usize::MAX);
        if index >= self.len {
            return Err(Error::IndexOutOfRange {
                place: Place { stage: Stage::Sampler, ..place },
                index,
                len: self.len,
            });
        }
        let sample = guard(place, || self.dataset.get(index).map_err(|error| Box::new(error) as BoxError))?;
        let Some(augment) = &self.augment else { return Ok(sample) };
        guard(Place { stage: Stage::Augment, ..place }, || {
            augment.apply(sample, &mut KeyedRng::new(Purpose::Sample, self.seed, place.epoch, index))
        })
    }
}
