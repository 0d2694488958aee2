//! Reads samples from the dataset and augments them. Errors and panics of user code become typed errors here.

use crate::{
    fault::{Activity, BoxError, Error, Faults, LeftOut, Skips, UserValues, during, guard_at},
    observe::TaskClock,
    stream::BatchItems,
    vocabulary::{BatchKey, Place, Stage},
};
use burn_augment::{Augment, KeyedRng};
use std::{
    any::Any,
    cell::Cell,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// The samples and the key of a batch.
#[derive(derive_more::Debug)]
pub(crate) struct BatchPlan {
    pub(crate) key: BatchKey,
    pub(crate) indices: Arc<[usize]>,
    /// Of a stream: the items, which are `BatchItems`.
    #[debug(skip)]
    pub(crate) items: Option<Arc<dyn Any + Send + Sync>>,
    /// The positions of these samples in the batch as requested, once some samples were skipped.
    pub(crate) positions: Option<Arc<[usize]>>,
    /// The number of the first sample and the step to the next, if samples with the same index are distinguished by numbers.
    pub(crate) occurrences: Option<(usize, usize)>,
    /// Set when the epoch has ended: work on this batch may stop.
    pub(crate) abandoned: Arc<AtomicBool>,
}

impl BatchPlan {
    pub(crate) fn place(&self, stage: Stage) -> Place {
        Place::batch(stage, self.key)
    }

    /// The position of a sample of this plan in the batch as requested.
    pub(crate) fn position(&self, at: usize) -> usize {
        self.positions.as_ref().map_or(at, |positions| positions[at])
    }

    /// The plan without skipped samples, and with the replacements.
    pub(crate) fn without(self: &Arc<Self>, skips: &Skips) -> Arc<Self> {
        if skips.is_empty() {
            return Arc::clone(self);
        }
        let mut indices = self.indices.to_vec();
        skips.replaced.iter().for_each(|(at, index)| indices[*at] = *index);
        let left = (0..indices.len()).filter(|at| skips.skipped.binary_search(at).is_err());
        Arc::new(Self {
            key: self.key,
            positions: Some(left.clone().map(|at| self.position(at)).collect()),
            indices: left.map(|at| indices[at]).collect(),
            items: self.items.clone(),
            occurrences: self.occurrences,
            abandoned: Arc::clone(&self.abandoned),
        })
    }

    /// The place of one sample of this batch, on a worker.
    pub(crate) fn place_of(&self, position: usize, worker: usize) -> Place {
        let index = self.indices.get(position).copied();
        Place { worker: Some(worker), index, ..self.place(Stage::Read) }
    }
}

/// Reads a sample of the user's dataset, with any type of error.
pub(crate) type GetOne<I> = Arc<dyn Fn(usize) -> Result<I, BoxError> + Send + Sync>;

/// Reads several samples of the user's dataset at once, one for each index. A sample that is left out is `None`.
pub(crate) type GetMany<I> = Arc<dyn Fn(Vec<usize>) -> Result<Vec<Option<I>>, BoxError> + Send + Sync>;

/// The samples of a dataset, augmented.
pub(crate) struct Samples<I> {
    pub(crate) get: GetOne<I>,
    /// How many samples are read at once, if `read_many` is set.
    pub(crate) many: Option<(usize, GetMany<I>)>,
    /// The dataset's length when the loader was built.
    pub(crate) len: usize,
    pub(crate) augment: Option<Arc<dyn Augment<I>>>,
    pub(crate) seed: u64,
    pub(crate) faults: Faults,
}

impl<I: 'static> Samples<I> {
    /// Adds the samples at some positions of a batch to `samples`, on the calling worker, up to the first failure,
    /// which is returned with its position. Stops without an error once the batch is abandoned. `read` has the samples that
    /// were read at once, from the last to the first, and those after a failure stay there.
    pub(crate) fn fetch(
        &self,
        plan: &BatchPlan,
        positions: Range<usize>,
        worker: usize,
        samples: &mut Vec<I>,
        read: &mut UserValues<Option<I>>,
        clock: &mut TaskClock<'_>,
    ) -> Result<(), (usize, Error)> {
        let doing = Activity::here();
        doing.note_batch(plan.place(Stage::Read), Some(&plan.indices));
        let place = || {
            let (position, stage) = doing.noted();
            Place { stage, ..plan.place_of(position, worker) }
        };
        let mut out_of_range = None;
        clock.group(self.augment.is_some());
        if read.is_empty() {
            *read = self.read_many(plan, positions.clone(), worker);
        }
        let items = plan.items.as_ref().and_then(|items| items.downcast_ref::<BatchItems<I>>());
        let fetched = guard_at(place, || {
            // These are local variables. Otherwise the notes, which are atomic, would make the CPU load them again for
            // every sample.
            let (get, augment, len) = (&*self.get, self.augment.as_deref(), self.len);
            let (doing, indices, abandoned) = (&*doing, &*plan.indices, &*plan.abandoned);
            for position in positions {
                let index = indices[position];
                doing.note(position, Stage::Read);
                if index >= len {
                    let place = Place { stage: Stage::Sampler, ..plan.place_of(position, worker) };
                    out_of_range = Some(Error::IndexOutOfRange { place, index, len });
                    return Ok(());
                }
                if abandoned.load(Relaxed) {
                    return Ok(());
                }
                let mut sample = match (read.pop(), items) {
                    (Some(sample), _) => sample.ok_or(LeftOut)?,
                    (None, Some(items)) => items.take(position)?,
                    (None, None) => get(index)?,
                };
                clock.sample(Stage::Read);
                if let Some(augment) = augment {
                    doing.note(position, Stage::Augment);
                    sample = augment.apply(sample, &mut self.rng(plan, position))?;
                    clock.sample(Stage::Augment);
                }
                samples.push(sample);
            }
            Ok(())
        });
        clock.samples(Stage::Read, samples.len());
        if plan.abandoned.load(Relaxed) {
            return Ok(()); // a read that the loader interrupted is not a fault
        }
        let failed = fetched.err().or(out_of_range);
        failed.map_or(Ok(()), |error| Err((doing.noted().0, error)))
    }

    /// Reads the samples at some positions of a batch at once, and returns them from the last to the first. Returns no samples if
    /// `read_many` is not set, or if reading fails. Then they are read one by one, so that an error names its sample.
    fn read_many(&self, plan: &BatchPlan, positions: Range<usize>, worker: usize) -> UserValues<Option<I>> {
        let Some((_, get_many)) = &self.many else { return UserValues::default() };
        let indices = &plan.indices[positions.clone()];
        if indices.len() < 2 || indices.iter().any(|index| *index >= self.len) || plan.abandoned.load(Relaxed) {
            return UserValues::default();
        }
        Activity::here().note(positions.start, Stage::Read);
        let read = guard_at(
            || plan.place_of(positions.start, worker).of_a_batch(),
            || Ok(UserValues(get_many(indices.to_vec())?)),
        );
        let mut samples = read.unwrap_or_else(|error| {
            log::debug!("{} samples could not be read at once, so they are read one by one: {error}", indices.len());
            drop(UserValues(vec![error]));
            UserValues::default()
        });
        samples.reverse();
        samples
    }

    /// How many samples are read before they are written. `group` is the best number for samples that are read one by
    /// one.
    pub(crate) fn group(&self, group: usize) -> usize {
        self.many.as_ref().map_or(group, |(count, _)| *count)
    }

    /// The number of samples of a task. `chunk` is the best number for samples that are read one by one.
    pub(crate) fn chunk(&self, chunk: usize) -> usize {
        self.many.as_ref().map_or(chunk, |(count, _)| chunk.next_multiple_of(*count))
    }

    /// The random generator for a position of a batch.
    fn rng(&self, plan: &BatchPlan, position: usize) -> KeyedRng {
        let number = |(first, step): (usize, usize)| first.wrapping_add(position.wrapping_mul(step));
        KeyedRng::for_occurrence(self.seed, plan.key.epoch, plan.indices[position], plan.occurrences.map(number))
    }

    /// Returns a replacement for the sample at a position of a batch, and its index: the `nth` sample after it in the
    /// dataset.
    pub(crate) fn instead(
        &self,
        plan: &BatchPlan,
        position: usize,
        nth: usize,
        worker: usize,
    ) -> Result<(usize, I), Error> {
        if plan.abandoned.load(Relaxed) {
            return Err(Error::Ended);
        }
        let key = plan.indices[position];
        let (index, stage) = ((key + nth) % self.len, Cell::new(Stage::Read));
        let place = || Place { stage: stage.get(), index: Some(index), ..plan.place_of(position, worker) };
        // The random key is that of the position. So if the epoch also has the replacement itself, it is augmented
        // differently there.
        let get = || {
            let sample = (self.get)(index)?;
            let Some(augment) = &self.augment else { return Ok(sample) };
            stage.set(Stage::Augment);
            augment.apply(sample, &mut self.rng(plan, position))
        };
        let sample = during(place(), || guard_at(place, get));
        let ended = |error| if plan.abandoned.load(Relaxed) { Error::Ended } else { error };
        Ok((index, sample.map_err(ended)?))
    }
}
