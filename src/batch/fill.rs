//! A worker's task: reads samples and writes them to their positions with the collate. Skips or replaces bad samples.

use super::{
    collate::Collate,
    row::RowMut,
    samples::{BatchPlan, Samples},
};
use crate::{
    fault::{Activity, Error, Panic, Skips, UserValues, drop_each, guard_at},
    memory::{Chunk, RowExtras, RowSize},
    observe::TaskClock,
    vocabulary::{Place, Stage},
};
use burn_shards::for_loader::end_waits_by;
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// The destination of a task's samples.
pub(super) trait SampleSink<I> {
    /// Writes samples to the positions from `first` on, up to the first failure.
    fn write(&mut self, first: usize, samples: &[I], clock: &mut TaskClock<'_>) -> Result<(), (usize, Error)>;

    /// Writes a sample to the position of a bad one.
    fn replace(&mut self, position: usize, sample: I) -> Result<(), Error>;

    /// Takes or drops the samples that were written to the positions from `first` on. Returns the panic if a drop
    /// panics.
    fn keep(&mut self, first: usize, samples: &mut Vec<I>) -> Result<(), Panic>;
}

/// A task in progress.
pub(super) struct Fill<'a, 'b, I, P> {
    pub(super) samples: &'a Samples<I>,
    pub(super) plan: &'a BatchPlan,
    pub(super) skips: &'a mut Skips,
    pub(super) clock: &'a mut TaskClock<'b>,
    pub(super) sink: &'a mut P,
}

impl<I: 'static, P: SampleSink<I>> Fill<'_, '_, I, P> {
    /// Fills positions, reading at most `group` samples at a time. Stops at the first failure that, by the policy,
    /// fails the batch, and returns it with its position.
    pub(super) fn run(mut self, positions: Range<usize>, group: usize) -> Result<(), (usize, Error)> {
        let Self { samples: source, plan, .. } = self;
        let worker = self.clock.worker();
        end_waits_by(Arc::clone(&plan.abandoned));
        let mut samples = UserValues(Vec::with_capacity(group.min(positions.len())));
        let mut read = UserValues::default();
        let mut first = positions.start;
        while first < positions.end {
            let end = positions.end.min(first + if read.is_empty() { group } else { read.len() });
            let fetched = source.fetch(plan, first..end, worker, &mut samples, &mut read, self.clock);
            let written = self.write(first, &samples);
            // Dropping samples is user code too.
            let (kept, fetched) = match &written {
                Ok(()) => (self.sink.keep(first, &mut samples), fetched),
                Err(_) => {
                    drop(UserValues(vec![fetched]));
                    (drop_each(samples.drain(..)), Ok(()))
                }
            };
            if let Err(Panic { message, trace }) = kept {
                let error = Error::Panicked { place: plan.place_of(first, worker).of_a_batch(), message, trace };
                self.decide((first, error))?; // no policy handles such an error, but it is reported
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
        while let Err(failure) = self.sink.write(first, samples, self.clock) {
            let position = failure.0;
            self.decide(failure)?;
            samples = &samples[position + 1 - first..];
            first = position + 1;
        }
        Ok(())
    }

    /// Skips or replaces a bad sample, or fails.
    #[cold]
    fn decide(&mut self, failure: (usize, Error)) -> Result<(), (usize, Error)> {
        let Self { samples, plan, .. } = *self;
        let (position, worker) = (failure.0, self.clock.worker());
        let others = samples.len.saturating_sub(1);
        samples.faults.decide(failure, self.skips, others, |nth| {
            let (index, sample) = samples.instead(plan, position, nth, worker)?;
            // The place is the row's, but the row has another sample.
            self.sink.replace(position, sample).map_err(|error| error.of_index(index))?;
            Ok(index)
        })
    }
}

/// Some rows of a batch, for the thread that writes them.
pub(crate) struct ChunkRows<'a> {
    pub(crate) chunk: Chunk,
    /// The sizes of padded fields, by row and then by field.
    pub(crate) sizes: Vec<RowSize>,
    /// The data that is not in the slot.
    pub(crate) extras: RowExtras,
    /// The place of the batch, for errors.
    place: Place,
    /// The indices of its samples. Without them an error names the position of its sample.
    indices: Option<&'a [usize]>,
    abandoned: &'a AtomicBool,
}

impl<'a> ChunkRows<'a> {
    pub(crate) fn new(chunk: Chunk, place: Place, indices: Option<&'a [usize]>, abandoned: &'a AtomicBool) -> Self {
        let (layout, rows) = (chunk.layout(), chunk.rows().len());
        let sizes = vec![RowSize::default(); rows * layout.fields.len()];
        let extras = RowExtras { columns: layout.empty_columns(rows), ..RowExtras::default() };
        Self { chunk, sizes, extras, place, indices, abandoned }
    }
}

/// A collate of any type, for samples of one type. It writes a group of samples per virtual call.
pub(crate) trait AnyCollate<I>: Collate<I> {
    /// Writes samples to the rows from `first` on, and checks that all fields of each are written. Stops at the first
    /// failure, or once the batch is abandoned. Notes each sample on the clock.
    fn write_rows(
        &self,
        first: usize,
        samples: &[I],
        rows: &mut ChunkRows<'_>,
        clock: Option<&mut TaskClock<'_>>,
    ) -> Result<(), (usize, Error)>;
}

impl<I, C: Collate<I>> AnyCollate<I> for C {
    fn write_rows(
        &self,
        first: usize,
        samples: &[I],
        rows: &mut ChunkRows<'_>,
        mut clock: Option<&mut TaskClock<'_>>,
    ) -> Result<(), (usize, Error)> {
        let ChunkRows { place, indices, abandoned, .. } = *rows;
        let ChunkRows { chunk, sizes, extras, .. } = rows;
        let fields = chunk.layout().fields.len();
        let sizes = &mut sizes[(first - chunk.rows().start) * fields..];
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
                    let mut row = RowMut::new(chunk, position, sizes, extras);
                    self.write(sample, &mut row)?;
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
}
