//! A worker's task: samples are fetched and put into their places. A collate writes them there. Bad ones are left out or
//! replaced.

use super::{
    collate::Collate,
    raw::RawBatch,
    row::RowMut,
    samples::{BatchPlan, Samples},
};
use crate::{
    fault::{Activity, BoxError, Error, Panic, Skips, UserValues, drop_each, guard_at},
    memory::{Chunk, Field, RowExtras, RowSize},
    observe::TaskClock,
    vocabulary::{Place, Stage},
};
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

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
    pub(super) plan: &'a BatchPlan,
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
                let error = Error::Panicked { place: plan.place_of(first, worker).of_a_batch(), message, trace };
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

/// Where samples are written: the rows of a chunk from `first` on, and the sizes of their padded fields.
pub(crate) struct ChunkRows<'a> {
    pub(crate) chunk: &'a mut Chunk,
    pub(crate) first: usize,
    pub(crate) sizes: &'a mut [RowSize],
    /// Takes what is not in the slot.
    pub(crate) beside: &'a mut RowExtras,
    /// The place of the batch, for errors.
    pub(crate) place: Place,
    /// The indices of its samples. Without them an error names the position of its sample.
    pub(crate) indices: Option<&'a [usize]>,
}

/// Lets a collate write samples, and checks that all fields of each are written. Stops at the first failure, or once the
/// batch is abandoned. Tells the clock of each sample.
pub(crate) fn write_rows<I, C: Collate<I>>(
    collate: &C,
    samples: &[I],
    rows: ChunkRows<'_>,
    abandoned: &AtomicBool,
    mut clock: Option<&mut TaskClock<'_>>,
) -> Result<(), (usize, Error)> {
    let ChunkRows { chunk, first, sizes, beside, place, indices } = rows;
    let fields = chunk.layout().fields.len();
    let doing = Activity::here();
    let index = |position| indices.map_or(Some(position), |indices| indices.get(position).copied());
    let written = guard_at(
        || Place { index: index(doing.noted().0), ..place },
        || {
            let doing = &*doing;
            for ((position, sample), sizes) in (first..).zip(samples).zip(sizes.chunks_mut(fields)) {
                if abandoned.load(Relaxed) {
                    return Ok(());
                }
                doing.note(position, Stage::Collate);
                let mut row = RowMut::new(chunk, position, sizes, beside);
                collate.write(sample, &mut row)?;
                row.complete()?;
                if let Some(clock) = &mut clock {
                    clock.sample(Stage::Collate);
                }
            }
            Ok(())
        },
    );
    written.map_err(|error| (doing.noted().0, error))
}

/// A collate of any type, for samples of one type. It takes a group of them at a time, so a row costs no call through a
/// pointer.
pub(crate) trait RowWriter<I, O>: Send + Sync {
    fn fields(&self) -> Vec<Field>;

    /// As [`write_rows`].
    fn write(
        &self,
        samples: &[I],
        rows: ChunkRows<'_>,
        abandoned: &AtomicBool,
        clock: Option<&mut TaskClock<'_>>,
    ) -> Result<(), (usize, Error)>;

    /// Makes the user's batch.
    fn finish(&self, raw: RawBatch) -> Result<O, BoxError>;
}

/// The writer of a collate.
pub(crate) struct CollateWriter<C>(pub(crate) C);

impl<I, C: Collate<I>> RowWriter<I, C::Batch> for CollateWriter<C> {
    fn fields(&self) -> Vec<Field> {
        self.0.layout()
    }

    fn write(
        &self,
        samples: &[I],
        rows: ChunkRows<'_>,
        abandoned: &AtomicBool,
        clock: Option<&mut TaskClock<'_>>,
    ) -> Result<(), (usize, Error)> {
        write_rows(&self.0, samples, rows, abandoned, clock)
    }

    fn finish(&self, raw: RawBatch) -> Result<C::Batch, BoxError> {
        self.0.finish(raw)
    }
}

/// A writer that leaves the tensors as they are.
pub(crate) struct PlainWriter<I, O>(pub(crate) Arc<dyn RowWriter<I, O>>);

impl<I, O> RowWriter<I, RawBatch> for PlainWriter<I, O> {
    fn fields(&self) -> Vec<Field> {
        self.0.fields()
    }

    fn write(
        &self,
        samples: &[I],
        rows: ChunkRows<'_>,
        abandoned: &AtomicBool,
        clock: Option<&mut TaskClock<'_>>,
    ) -> Result<(), (usize, Error)> {
        self.0.write(samples, rows, abandoned, clock)
    }

    fn finish(&self, raw: RawBatch) -> Result<RawBatch, BoxError> {
        Ok(raw)
    }
}
