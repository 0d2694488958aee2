//! Batches made row by row: workers write samples straight into the rows of a shared slot.

use super::{
    collate::Collate,
    fill::{Fill, Places},
    filled_rows::{FilledRows, PaddedRows},
    next::{Next, Ready},
    rows_source::RowsSource,
    samples::{BatchPlan, FirstFailure},
    source::{Done, Outcome, Source, Task},
    write::{Rows, write_rows},
};
use crate::{
    device::Target,
    fault::{Doing, Error, Faults, Skips},
    memory::{Chunk, LongFiles, Permit, Pool, Wait, remove_rows},
    observe::TaskClock,
    vocabulary::{Place, Stage},
};
use parking_lot::Mutex;
use std::{
    mem,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// What the tasks of one batch share.
struct RowsJob<I, C> {
    source: Arc<RowsSource<I, C>>,
    plan: Arc<BatchPlan>,
    written: Mutex<Written>,
}

#[derive(Default)]
struct Written {
    failed: FirstFailure,
    skips: Skips,
    /// The lengths of padded fields, by row and then by field; empty without such fields.
    lengths: Vec<usize>,
    long: LongFiles,
}

struct RowsTask<I, C> {
    job: Arc<RowsJob<I, C>>,
    chunk: Chunk,
    long: LongFiles,
}

/// The rows of a task.
struct TaskRows<'a, I, C> {
    job: &'a RowsJob<I, C>,
    worker: usize,
    chunk: &'a mut Chunk,
    long: &'a mut LongFiles,
    lengths: &'a mut [usize],
}

impl<I, C: Collate<I>> TaskRows<'_, I, C> {
    fn write_rows(&mut self, first: usize, samples: &[I], wrote: impl FnMut()) -> Result<(), (usize, Error)> {
        let RowsJob { source, plan, .. } = self.job;
        let lengths = &mut self.lengths[(first - self.chunk.rows().start) * source.layout.fields.len()..];
        let rows = Rows { chunk: self.chunk, first, lengths, long: self.long };
        let place = |position| Place { stage: Stage::Collate, ..plan.sample(position, self.worker) };
        write_rows(&*source.collate, samples, rows, &plan.abandoned, place, wrote)
    }
}

impl<I, C: Collate<I>> Places<I> for TaskRows<'_, I, C> {
    fn write(&mut self, first: usize, samples: &[I], clock: &mut TaskClock<'_>) -> Result<(), (usize, Error)> {
        let written = self.write_rows(first, samples, || clock.sample(Stage::Collate));
        clock.samples(Stage::Collate, written.as_ref().map_or_else(|(bad, _)| bad - first, |()| samples.len()));
        written
    }

    fn replace(&mut self, position: usize, sample: I) -> Result<(), Error> {
        self.write_rows(position, &[sample], || {}).map_err(|(_, error)| error)
    }

    fn keep(&mut self, _: usize, samples: &mut Vec<I>) {
        samples.clear();
    }
}

impl<I, C> Task<C::Batch> for RowsTask<I, C>
where
    I: Send + 'static,
    C: Collate<I>,
{
    fn rows(&self) -> usize {
        self.chunk.rows().len()
    }

    fn run(mut self: Box<Self>, worker: usize) -> Done<C::Batch> {
        let RowsTask { job, chunk, long } = &mut *self;
        let RowsJob { source, plan, .. } = &**job;
        let mut clock = TaskClock::start(&source.samples.counters, worker, plan.at.key);
        let rows = chunk.rows();
        let mut lengths = vec![0; rows.len() * source.layout.fields.len()];
        let mut skips = Skips::default();
        let places = TaskRows { job, worker, chunk, long, lengths: &mut lengths };
        let fill = Fill { samples: &source.samples, plan, worker, skips: &mut skips, clock: &mut clock, places };
        let written = fill.run(rows.clone(), source.samples.group(source.group));
        let rows_took = clock.end(rows.len());
        Doing::here().whole(Place { worker: Some(worker), ..plan.place(Stage::Collate) });
        let (outcome, skips) = self.end(written, &lengths, skips);
        Done { outcome, rows_took, skips }
    }
}

impl<I: Send + 'static, C: Collate<I>> RowsTask<I, C> {
    /// Notes the result of the rows; the last task of the batch returns the batch.
    fn end(
        self,
        written: Result<(), (usize, Error)>,
        lengths: &[usize],
        skips: Skips,
    ) -> (Option<Outcome<C::Batch>>, Skips) {
        let RowsTask { job, chunk, long } = self;
        let first = chunk.rows().start * job.source.layout.fields.len();
        let _too_many; // dropped after the lock
        let mut outcome = job.written.lock();
        if let Some(all) = outcome.lengths.get_mut(first..first + lengths.len()) {
            all.copy_from_slice(lengths);
        }
        if let Err(failure) = written {
            outcome.failed.note(failure);
        }
        _too_many = outcome.skips.merge(skips);
        outcome.long.extend(long);
        // This happens under the lock, so that the last task sees the outcome of every other task.
        let Some(mut slot) = chunk.finish() else { return (None, Skips::default()) };
        let Written { mut failed, skips, mut lengths, long } = mem::take(&mut *outcome);
        drop(outcome);
        if job.plan.abandoned.load(Relaxed) {
            return (None, skips); // rows may be missing, and `finish` sees whole batches only
        }
        let outcome = match failed.take() {
            Some(error) => Err(error),
            None if skips.skipped.len() == job.plan.indices.len() => Ok(Next::Ready(Ready::Empty)),
            None => {
                remove_rows(&job.source.layout, &mut slot, &mut lengths, job.plan.indices.len(), &skips.skipped);
                let (source, plan) = (Arc::clone(&job.source), job.plan.without(&skips));
                let rows = FilledRows { source, slot, plan, longest: Vec::new(), lengths, long, decoded: Vec::new() };
                Ok(match job.source.layout.has_padded() {
                    true => Next::Pin(Box::new(PaddedRows(rows))),
                    false => Next::Send(Box::new(rows)),
                })
            }
        };
        (Some(outcome), skips)
    }
}

impl<I, C> Source<C::Batch> for RowsSource<I, C>
where
    I: Send + 'static,
    C: Collate<I>,
{
    fn target(&self) -> &Target {
        &self.target
    }

    fn faults(&self) -> &Faults {
        &self.samples.faults
    }

    fn slot_bytes(&self) -> Option<usize> {
        Some(self.layout.bytes())
    }

    fn is_uneven(&self) -> bool {
        self.layout.decoder().is_some()
    }

    fn open(
        self: Arc<Self>,
        plan: Arc<BatchPlan>,
        permit: Permit,
        pool: &Arc<Pool>,
        wait: &Wait<'_>,
        chunk: usize,
    ) -> Result<Vec<Box<dyn Task<C::Batch>>>, Error> {
        let (rows, max) = (plan.indices.len(), self.layout.rows());
        if rows > max {
            // The batch is larger than the sampler said at first.
            return Err(Error::LargeBatch { place: plan.place(Stage::Sampler), got: rows, max });
        }
        let slot = pool.slot(permit, self.layout.bytes(), wait)?;
        let chunks = slot.split(&self.layout, rows, self.samples.chunk(chunk));
        let lengths = if self.layout.has_padded() { vec![0; rows * self.layout.fields.len()] } else { Vec::new() };
        let written = Mutex::new(Written { lengths, ..Written::default() });
        let job = Arc::new(RowsJob { source: self, plan, written });
        let task = |chunk| {
            Box::new(RowsTask { job: Arc::clone(&job), chunk, long: LongFiles::new() }) as Box<dyn Task<C::Batch>>
        };
        Ok(chunks.into_iter().map(task).collect())
    }
}
