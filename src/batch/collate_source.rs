//! Batches made row by row: workers write samples straight into the rows of a shared slot.

use super::{
    collate::Collate,
    filled_rows::{FilledRows, PaddedRows},
    next::{Next, Ready},
    rows_source::RowsSource,
    samples::{BatchPlan, FirstFailure},
    source::{Done, Outcome, Source, Task},
    write::{Rows, write_rows},
};
use crate::{
    device::Target,
    fault::{Doing, Error, Faults, Skips, guard_at},
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

impl<I, C> RowsTask<I, C>
where
    I: Send + 'static,
    C: Collate<I>,
{
    /// Writes the rows up to the first failure that the policy lets fail the batch.
    fn write(
        &mut self,
        worker: usize,
        lengths: &mut [usize],
        skips: &mut Skips,
        clock: &mut TaskClock<'_>,
    ) -> Result<(), (usize, Error)> {
        let job = Arc::clone(&self.job);
        let RowsJob { source, plan, .. } = &*job;
        let rows = self.chunk.rows();
        let mut samples = Vec::with_capacity(source.group);
        let mut first = rows.start;
        while first < rows.end {
            let end = rows.end.min(first + source.group);
            let fetched = source.samples.fetch(plan, first..end, worker, &mut samples, clock);
            self.write_fetched(worker, first, &samples, lengths, skips, clock)?;
            clock.samples(Stage::Collate, samples.len());
            // Dropping samples is user code too.
            let dropped = guard_at(
                || plan.sample(first, worker).of_a_batch(),
                || {
                    samples.clear();
                    Ok(())
                },
            );
            if let Err(error) = dropped {
                self.decide(worker, (first, error), lengths, skips)?; // no policy accepts it, but it is reported
            }
            first = match fetched {
                Ok(()) => end,
                Err(failure) => {
                    let position = failure.0;
                    self.decide(worker, failure, lengths, skips)?;
                    position + 1
                }
            };
        }
        Ok(())
    }

    /// Writes samples to the rows from `first` on.
    fn write_fetched(
        &mut self,
        worker: usize,
        mut first: usize,
        mut samples: &[I],
        lengths: &mut [usize],
        skips: &mut Skips,
        clock: &mut TaskClock<'_>,
    ) -> Result<(), (usize, Error)> {
        while let Err(failure) = self.write_rows(worker, first, samples, lengths, || clock.sample(Stage::Collate)) {
            let position = failure.0;
            self.decide(worker, failure, lengths, skips)?;
            samples = &samples[position + 1 - first..];
            first = position + 1;
        }
        Ok(())
    }

    fn write_rows(
        &mut self,
        worker: usize,
        first: usize,
        samples: &[I],
        lengths: &mut [usize],
        wrote: impl FnMut(),
    ) -> Result<(), (usize, Error)> {
        let RowsJob { source, plan, .. } = &*self.job;
        let lengths = &mut lengths[(first - self.chunk.rows().start) * source.layout.fields.len()..];
        let rows = Rows { chunk: &mut self.chunk, first, lengths, long: &mut self.long };
        let place = |position| Place { stage: Stage::Collate, ..plan.sample(position, worker) };
        write_rows(&*source.collate, samples, rows, &plan.abandoned, place, wrote)
    }

    /// Leaves out or replaces a bad sample, or fails with it.
    #[cold]
    fn decide(
        &mut self,
        worker: usize,
        failure: (usize, Error),
        lengths: &mut [usize],
        skips: &mut Skips,
    ) -> Result<(), (usize, Error)> {
        let job = Arc::clone(&self.job);
        let RowsJob { source, plan, .. } = &*job;
        let position = failure.0;
        source.samples.faults.decide(failure, skips, source.samples.others(), |nth| {
            let (index, sample) = source.samples.instead(plan, position, nth, worker)?;
            let written = self.write_rows(worker, position, &[sample], lengths, || {});
            // The place is that of the row, but another sample is in it.
            written.map_err(|(_, error)| error.of_index(index))?;
            Ok(index)
        })
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
        let job = Arc::clone(&self.job);
        let mut clock = TaskClock::start(&job.source.samples.counters, worker, job.plan.at.key);
        let fields = job.source.layout.fields.len();
        let mut lengths = vec![0; self.rows() * fields];
        let mut skips = Skips::default();
        let written = self.write(worker, &mut lengths, &mut skips, &mut clock);
        let rows_took = clock.end(self.rows());
        Doing::here().whole(Place { worker: Some(worker), ..job.plan.place(Stage::Collate) });
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
                let rows = FilledRows { source, slot, plan, longest: Vec::new(), long, decoded: Vec::new() };
                Ok(match job.source.layout.has_padded() {
                    true => Next::Pin(Box::new(PaddedRows { rows, lengths })),
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
        let chunks = slot.split(&self.layout, rows, chunk);
        let lengths = if self.layout.has_padded() { vec![0; rows * self.layout.fields.len()] } else { Vec::new() };
        let written = Mutex::new(Written { lengths, ..Written::default() });
        let job = Arc::new(RowsJob { source: self, plan, written });
        let task = |chunk| {
            Box::new(RowsTask { job: Arc::clone(&job), chunk, long: LongFiles::new() }) as Box<dyn Task<C::Batch>>
        };
        Ok(chunks.into_iter().map(task).collect())
    }
}
