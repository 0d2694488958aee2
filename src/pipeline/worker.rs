//! A worker: it takes the most urgent task of all epochs, or opens a batch.

use super::{
    pipeline::Pipeline,
    state::{BatchId, workers::Work},
};
use crate::{
    batch::{BatchPlace, BatchPlan, Task},
    fault::{Error, catch, discard, during},
    memory::{Permit, Wait},
    observe::{Span, TaskClock},
    order::{BatchIndices, Feed},
    vocabulary::{Place, Stage},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Instant,
};

/// What a worker does until it has to end.
pub(super) fn run<O>(pipeline: &Pipeline<O>, worker: usize) {
    #[cfg(all(feature = "cuda", target_os = "linux"))]
    if !pipeline.is_host() {
        crate::sync::step_back(10); // the cores are left to the threads that copy: see benches/README.md
    }
    while let Some(work) = pipeline.work(worker) {
        match work {
            Work::Open { batch, feed, permit, abandoned, since } => {
                pipeline.counters().took(Stage::SlotWait, batch.key, since, Instant::now());
                pipeline.open(batch, feed, permit, abandoned);
            }
            Work::Task { batch, task } => {
                let (rows, mut clock) = (task.rows(), TaskClock::start(pipeline.counters(), worker, batch.key));
                pipeline.busy.fetch_add(1, Relaxed);
                // User code is guarded where it is called. Only the `drop` of samples is left.
                let place = Place { worker: Some(worker), ..batch.place(Stage::Collate) };
                match during(place, || catch(|| task.run(&mut clock))) {
                    Ok(done) => {
                        pipeline.ran(rows, clock.worked());
                        if let Some((next, skips)) = done {
                            pipeline.filled(batch, next, skips);
                        }
                    }
                    Err(caught) => pipeline.broke(batch, worker, caught),
                }
                pipeline.busy.fetch_sub(1, Relaxed);
            }
        }
    }
}

impl<O> Pipeline<O> {
    /// Waits for work for a worker. Returns `None` if the worker has to end.
    pub(super) fn work(&self, worker: usize) -> Option<Work<O>> {
        let asked = Instant::now();
        let mut state = self.lock();
        while state.goes_on(worker) {
            if let Some(work) =
                state.take_work(self.pool.has_permit(), || self.pool.try_permit(), asked, Instant::now())
            {
                let more = state.has_work(self.pool.has_permit());
                drop(state);
                if more {
                    self.for_workers.notify_one();
                }
                return Some(work);
            }
            self.for_workers.wait(&mut state);
        }
        drop(state);
        self.for_workers.notify_one(); // this worker may have been woken for work
        None
    }

    /// Opens a batch: takes its indices, gives it a slot and cuts it into tasks.
    pub(super) fn open(&self, batch: BatchId, mut feed: Feed, permit: Permit, abandoned: Arc<AtomicBool>) {
        let tasks = self.cut(batch, &mut feed, permit, &abandoned);
        if let Err(error) = &tasks {
            self.source.faults().saw(error);
        }
        let (count, left_over) = self.lock().opened(batch, feed, tasks, Instant::now());
        discard(batch.place(Stage::Read), left_over);
        for _ in 0..count.max(1) {
            self.for_workers.notify_one();
        }
        if count == 0 {
            self.for_consumers.notify_all();
        }
    }

    fn cut(
        &self,
        batch: BatchId,
        feed: &mut Feed,
        permit: Permit,
        abandoned: &Arc<AtomicBool>,
    ) -> Result<Vec<Box<dyn Task<O>>>, Error> {
        let at = BatchPlace { key: batch.key, position: feed.position() };
        let sampling = Span::new(self.counters(), Stage::Sampler, batch.key);
        let BatchIndices { indices, occurrences } = feed.take(batch.place(Stage::Sampler))?;
        drop(sampling);
        let chunk = self.chunk(indices.len(), self.lock().workers());
        let plan = Arc::new(BatchPlan {
            at,
            indices: indices.into(),
            positions: None,
            occurrences,
            abandoned: Arc::clone(abandoned),
        });
        self.with_slot(batch, abandoned, |wait| Arc::clone(&self.source).open(plan, permit, &self.pool, wait, chunk)).0
    }

    /// Does work that may have to wait for a slot's memory, until the epoch ends. That wait is counted separately. Also
    /// returns the start of the work, moved forward by the time of the wait.
    pub(super) fn with_slot<T>(
        &self,
        batch: BatchId,
        ended: &AtomicBool,
        work: impl FnOnce(&Wait<'_>) -> T,
    ) -> (T, Instant) {
        let (start, wait) = (Instant::now(), Wait::until_ended(ended));
        let done = during(batch.place(Stage::SlotWait), || work(&wait));
        let rest = start + wait.took();
        if rest > start {
            self.counters().took(Stage::SlotWait, batch.key, start, rest);
        }
        (done, rest)
    }
}
