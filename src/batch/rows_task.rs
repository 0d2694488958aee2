//! Batches made row by row: workers write samples straight into the rows of a shared slot.

use super::{
    fill::{Fill, Places},
    filled_rows::FilledRows,
    job::Job,
    next::Next,
    rows_source::{RowsSource, for_device, group},
    samples::BatchPlan,
    source::{Source, Task},
    write::ChunkRows,
};
use crate::{
    device::Target,
    fault::{Activity, Error, Faults, Panic, Skips, drop_each},
    memory::{Chunk, Column, Permit, Pool, RowExtras, RowSize, Slot, Wait, join_columns, remove_rows},
    observe::TaskClock,
    picture_row::LongFiles,
    vocabulary::{Place, Stage},
};
use std::sync::Arc;

/// The slot, the sizes of rows, and what is beside the slot, that the tasks of one batch make.
struct Written {
    /// The slot, from the chunk that was finished last.
    slot: Option<Slot>,
    /// The sizes of padded fields, by row and then by field; empty without such fields.
    sizes: Vec<RowSize>,
    long: LongFiles,
    /// The columns of each task, with its first row; empty without columns.
    columns: Vec<(usize, Vec<Column>)>,
    /// A bit for each field with a value that does not fit the device's integers.
    beyond: u64,
}

struct RowsTask<I, O> {
    job: Arc<Job<RowsSource<I, O>, Written>>,
    chunk: Chunk,
    beside: RowExtras,
}

/// The rows of a task.
struct TaskRows<'a, I, O> {
    job: &'a Job<RowsSource<I, O>, Written>,
    worker: usize,
    chunk: &'a mut Chunk,
    beside: &'a mut RowExtras,
    sizes: &'a mut [RowSize],
}

impl<I, O> TaskRows<'_, I, O> {
    fn write_rows(
        &mut self,
        first: usize,
        samples: &[I],
        clock: Option<&mut TaskClock<'_>>,
    ) -> Result<(), (usize, Error)> {
        let Job { source, plan, .. } = self.job;
        let sizes = &mut self.sizes[(first - self.chunk.rows().start) * source.layout.fields.len()..];
        let rows = ChunkRows { chunk: self.chunk, first, sizes, beside: self.beside };
        let place = |position| Place { stage: Stage::Collate, ..plan.sample(position, self.worker) };
        source.collate.write_rows(samples, rows, &plan.abandoned, &place, clock)
    }
}

impl<I, O> Places<I> for TaskRows<'_, I, O> {
    fn write(&mut self, first: usize, samples: &[I], clock: &mut TaskClock<'_>) -> Result<(), (usize, Error)> {
        let written = self.write_rows(first, samples, Some(&mut *clock));
        clock.samples(Stage::Collate, written.as_ref().map_or_else(|(bad, _)| bad - first, |()| samples.len()));
        written
    }

    fn replace(&mut self, position: usize, sample: I) -> Result<(), Error> {
        self.write_rows(position, &[sample], None).map_err(|(_, error)| error)
    }

    fn keep(&mut self, _: usize, samples: &mut Vec<I>) -> Result<(), Panic> {
        drop_each(samples.drain(..))
    }
}

impl<I: Send + 'static, O: Send + 'static> Task<O> for RowsTask<I, O> {
    fn rows(&self) -> usize {
        self.chunk.rows().len()
    }

    fn run(self: Box<Self>, clock: &mut TaskClock<'_>) -> Option<(Result<Next<O>, Error>, Skips)> {
        let Self { job, mut chunk, mut beside } = *self;
        let Job { source, plan, .. } = &*job;
        let (rows, fields, worker) = (chunk.rows(), source.layout.fields.len(), clock.worker());
        let mut sizes = vec![RowSize::default(); rows.len() * fields];
        let mut skips = Skips::default();
        let places = TaskRows { job: &job, worker, chunk: &mut chunk, beside: &mut beside, sizes: &mut sizes };
        let fill = Fill { samples: &source.samples, plan, worker, skips: &mut skips, clock, places };
        let filled = fill.run(rows.clone(), source.samples.group(source.group));
        clock.end(rows.len());
        Activity::here().whole(Place { worker: Some(worker), ..plan.place(Stage::Collate) });
        let add = |all: &mut Written| {
            let first = rows.start * fields;
            if let Some(all) = all.sizes.get_mut(first..first + sizes.len()) {
                all.copy_from_slice(&sizes);
            }
            all.beyond |= beside.beyond;
            all.long.extend(beside.long);
            if !beside.columns.is_empty() {
                all.columns.push((rows.start, beside.columns));
            }
            all.slot = chunk.finish();
        };
        job.end(filled, skips, add, |Written { slot, mut sizes, long, columns, beyond }, skips| {
            let mut slot = slot.ok_or(Error::Ended)?; // the slot is there, unless a chunk was dropped
            remove_rows(&source.layout, &mut slot, &mut sizes, plan.indices.len(), &skips.skipped);
            // Values of skipped rows are dropped here, which is user code.
            let columns = join_columns(columns, &skips.skipped);
            let (source, plan) = (Arc::clone(source), plan.without(skips));
            let pads = source.layout.has_padded();
            let rows = Box::new(FilledRows {
                source,
                slot,
                plan,
                largest: Vec::new(),
                sizes,
                long,
                columns,
                beyond,
                decoded: Vec::new(),
            });
            Ok(if pads { Next::Pin(rows) } else { Next::Send(rows) })
        })
    }
}

impl<I: Send + 'static, O: Send + 'static> Source<O> for RowsSource<I, O> {
    fn target(&self) -> &Target {
        &self.target
    }

    fn on(&self, target: Target) -> Result<Arc<dyn Source<O>>, Error> {
        let (target, layout) = for_device(target, &self.plain)?;
        Ok(Arc::new(Self {
            samples: Arc::clone(&self.samples),
            collate: Arc::clone(&self.collate),
            finish: Arc::clone(&self.finish),
            plain: Arc::clone(&self.plain),
            group: group(layout.bytes() / layout.rows()),
            layout,
            target,
        }))
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
    ) -> Result<Vec<Box<dyn Task<O>>>, Error> {
        let (rows, max) = (plan.indices.len(), self.layout.rows());
        if rows > max {
            // The batch is larger than the sampler said when the loader was built.
            return Err(Error::LargeBatch { place: plan.place(Stage::Sampler), got: rows, max });
        }
        let slot = pool.slot(permit, self.layout.bytes(), wait)?;
        let chunks = slot.split(&self.layout, rows, self.samples.chunk(chunk));
        let sizes = if self.layout.has_padded() {
            vec![RowSize::default(); rows * self.layout.fields.len()]
        } else {
            Vec::new()
        };
        let job = Job::new(
            self,
            plan,
            chunks.len(),
            Written { slot: None, sizes, long: LongFiles::new(), columns: Vec::new(), beyond: 0 },
        );
        let task = |chunk: Chunk| {
            let beside =
                RowExtras { columns: job.source.layout.empty_columns(chunk.rows().len()), ..RowExtras::default() };
            Box::new(RowsTask { job: Arc::clone(&job), chunk, beside }) as Box<dyn Task<O>>
        };
        Ok(chunks.into_iter().map(task).collect())
    }
}
