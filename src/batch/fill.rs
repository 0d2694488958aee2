//! A worker's task: samples are fetched and put into their places. Bad ones are left out or replaced.

use super::samples::{BatchPlan, Samples};
use crate::{
    fault::{Error, Panic, Skips, UserValues, drop_each},
    observe::TaskClock,
};
use std::{ops::Range, sync::Arc};

/// Where the samples of a task go.
pub(super) trait Places<I> {
    /// Writes samples to the positions from `first` on, up to the first failure.
    fn write(&mut self, first: usize, samples: &[I], clock: &mut TaskClock<'_>) -> Result<(), (usize, Error)>;

    /// Writes a sample to the position of a bad one.
    fn replace(&mut self, position: usize, sample: I) -> Result<(), Error>;

    /// Takes or drops the samples that were written to the positions from `first` on. Returns a panic of a drop.
    fn keep(&mut self, first: usize, samples: &mut Vec<I>) -> Result<(), Panic>;
}

/// A task at work.
pub(super) struct Fill<'a, 'b, I, P> {
    pub(super) samples: &'a Samples<I>,
    pub(super) plan: &'a Arc<BatchPlan>,
    pub(super) worker: usize,
    pub(super) skips: &'a mut Skips,
    pub(super) clock: &'a mut TaskClock<'b>,
    pub(super) places: P,
}

impl<I: 'static, P: Places<I>> Fill<'_, '_, I, P> {
    /// Fills positions, reading at most `group` samples at a time, up to the first failure that the policy lets fail the
    /// batch. It is returned with its position.
    pub(super) fn run(mut self, positions: Range<usize>, group: usize) -> Result<(), (usize, Error)> {
        let Self { samples: source, plan, worker, .. } = self;
        plan.end_waits();
        let mut samples = UserValues::from(Vec::with_capacity(group.min(positions.len())));
        let mut first = positions.start;
        while first < positions.end {
            let end = positions.end.min(first + group);
            let fetched = source.fetch(plan, first..end, worker, &mut samples, self.clock);
            let written = self.write(first, &samples);
            // Dropping samples is user code too.
            let (kept, fetched) = match &written {
                Ok(()) => (self.places.keep(first, &mut samples), fetched),
                Err(_) => {
                    drop(UserValues::from(vec![fetched]));
                    (drop_each(samples.drain(..)), Ok(()))
                }
            };
            if let Err(Panic { message, trace }) = kept {
                let error = Error::Panicked { place: plan.sample(first, worker).of_a_batch(), message, trace };
                self.decide((first, error))?; // no policy accepts such an error, but it is reported
            }
            written?;
            first = match fetched {
                Ok(()) => end,
                Err(failure) => {
                    let position = failure.0;
                    self.decide(failure)?;
                    position + 1
                }
            };
        }
        Ok(())
    }

    /// Writes samples to the positions from `first` on.
    fn write(&mut self, mut first: usize, mut samples: &[I]) -> Result<(), (usize, Error)> {
        while let Err(failure) = self.places.write(first, samples, self.clock) {
            let position = failure.0;
            self.decide(failure)?;
            samples = &samples[position + 1 - first..];
            first = position + 1;
        }
        Ok(())
    }

    /// Leaves out or replaces a bad sample, or fails with it.
    #[cold]
    fn decide(&mut self, failure: (usize, Error)) -> Result<(), (usize, Error)> {
        let Self { samples, plan, worker, .. } = *self;
        let position = failure.0;
        samples.faults.decide(failure, self.skips, samples.others(), |nth| {
            let (index, sample) = samples.instead(plan, position, nth, worker)?;
            // The place is that of the row, but another sample is in it.
            self.places.replace(position, sample).map_err(|error| error.of_index(index))?;
            Ok(index)
        })
    }
}
