//! What the threads of a loader share: the epochs that run, their batches at every stage, and who waits for what.
//!
//! One lock guards all of it. It is held for moments only: user code, allocations and device calls run outside it.
//! Threads take their work from here, and nothing is pushed to a thread. So the permits of the pool limit every queue.

use super::{
    epochs::{Epochs, Work},
    flow::Flow,
    run::{BatchId, Run},
};
use crate::{
    batch::{Outcome, Ready, Source, Step},
    device::{Common, DeviceWindow},
    fault::{Caught, Error, Skips, Watch, discard},
    memory::Pool,
    observe::{Counters, OnDevice},
    pipeline::tune::Tuning,
    sync::{Condvar, Mutex, MutexGuard},
    vocabulary::{BatchKey, Place, Stage},
};
use crossbeam_utils::CachePadded;
use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

pub(crate) struct Pipeline<O> {
    pub(crate) source: Arc<dyn Source<O>>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) flow: Flow,
    pub(super) tuning: Option<Tuning>,
    pub(crate) device: Arc<DeviceWindow>,
    /// What the transfer threads share.
    pub(super) common: Common,
    pub(crate) watch: Arc<Watch>,
    pub(super) state: Mutex<Epochs<O>>,
    pub(super) for_workers: Condvar,
    /// Where workers sleep that `Auto` does not need.
    pub(super) for_resting: Condvar,
    /// Where the threads of the steps sleep.
    pub(super) for_steps: [Condvar; Step::COUNT],
    pub(super) for_consumers: Condvar,
    /// A running mean of the time that one row takes a worker, in nanoseconds.
    pub(super) row_ns: CachePadded<AtomicU64>,
}

impl<O> Pipeline<O> {
    pub(crate) fn new(source: Arc<dyn Source<O>>, pool: Arc<Pool>, flow: Flow, tuning: Option<Tuning>) -> Self {
        let common = Common::default();
        let looks = common.clone();
        let device = Arc::new(DeviceWindow::new(flow.ahead() + 1, move || looks.look())); // one more for the batch of the step, or it waits
        let watched = Arc::clone(&device) as Arc<dyn OnDevice>;
        pool.counters().watch_device(Arc::downgrade(&watched));
        Self {
            source,
            pool,
            device,
            common,
            watch: Arc::new(Watch::new(flow.timeout)),
            state: Mutex::new(Epochs::new(flow.workers)),
            flow,
            tuning,
            for_workers: Condvar::new(),
            for_resting: Condvar::new(),
            for_steps: Default::default(),
            for_consumers: Condvar::new(),
            row_ns: CachePadded::default(),
        }
    }

    /// Where the threads of a step sleep.
    pub(super) fn for_step(&self, step: Step) -> &Condvar {
        &self.for_steps[step as usize]
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Epochs<O>> {
        self.state.lock()
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.pool.counters()
    }

    // Workers.

    /// Waits for work for a worker that has nothing in hand; returns `None` when the pipeline is closed.
    pub(crate) fn work(&self, worker: usize) -> Option<Work<O>> {
        let mut state = self.lock();
        state.in_hand[worker] = None;
        while !state.closed {
            if !state.is_at_work(worker, self.flow.now.workers()) {
                if state.has_work(self.most_open(), &self.flow) {
                    self.for_workers.notify_one(); // this worker was woken for that work
                }
                self.for_resting.wait(&mut state);
                continue;
            }
            if let Some(work) = state.take_work(worker, self.most_open(), &self.flow) {
                let more = state.has_work(self.most_open(), &self.flow);
                drop(state);
                if more {
                    self.for_workers.notify_one();
                }
                return Some(work);
            }
            self.for_workers.wait(&mut state);
        }
        None
    }

    pub(super) fn most_open(&self) -> usize {
        self.flow.most_open(self.pool.limits().slots)
    }

    /// Notes how long a task took.
    pub(crate) fn ran(&self, rows: usize, time: Duration) {
        let row_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) / (rows as u64).max(1);
        let mean = self.row_ns.load(Relaxed);
        let mean = if mean == 0 { row_ns } else { (7 * mean + row_ns) / 8 };
        self.row_ns.store(mean.max(1), Relaxed); // workers that race may lose a sample; a mean allows that
    }

    /// Notes bad samples of a batch, in addition to those that were noted before.
    pub(crate) fn skipped(&self, batch: BatchId, skips: Skips) {
        if skips.is_empty() {
            return;
        }
        self.put(batch, skips, |run, skips| {
            run.skips.entry(batch.key.number).or_default().merge(skips);
            None
        });
    }

    /// Takes a filled batch to its next step, with the record of its bad samples.
    pub(crate) fn filled(&self, batch: BatchId, outcome: Outcome<O>, skips: Skips) {
        self.skipped(batch, skips);
        match outcome {
            Ok(next) => drop(self.pass(batch, Ok(next))),
            Err(error) => drop(self.deliver(batch, Err(error))), // it was reported where it happened
        }
    }

    /// Notes that a panic ended a worker's task.
    pub(crate) fn broke(&self, batch: BatchId, worker: usize, Caught { message, trace }: Caught) {
        if self.lock().run(batch.run).is_none() {
            return;
        }
        let place = Place { worker: Some(worker), ..batch.place(Stage::Collate) };
        self.ready(batch, Err(Error::Panicked { place, message, trace }));
    }

    // All threads.

    /// Waits until `take` finds something; returns `None` when the pipeline is closed.
    pub(super) fn wait_for<T>(
        &self,
        condition: &Condvar,
        mut take: impl FnMut(&mut Epochs<O>) -> Option<T>,
    ) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(found) = take(&mut state) {
                return Some(found);
            }
            condition.wait(&mut state);
        }
    }

    /// Puts a part of a batch into its epoch; returns whether it was put there. If the epoch has ended or the batch was
    /// given up, the part is dropped outside the lock.
    pub(super) fn put<T>(&self, batch: BatchId, part: T, put: impl FnOnce(&mut Run<O>, T) -> Option<T>) -> bool {
        let mut state = self.lock();
        let left_over = match state.run(batch.run) {
            Some(run) if batch.key.number >= run.delivered => put(run, part),
            _ => Some(part),
        };
        drop(state);
        let taken = left_over.is_none();
        discard(batch.place(Stage::Finish), left_over);
        taken
    }

    /// The number of epochs in progress.
    pub(crate) fn epochs(&self) -> usize {
        self.lock().runs.len()
    }

    /// Puts a batch, or its error, at its place for the consumer; returns whether there is one.
    pub(crate) fn ready(&self, batch: BatchId, ready: Result<Ready<O>, Error>) -> bool {
        self.deliver(batch, ready.inspect_err(|error| self.source.faults().saw(error)))
    }

    /// The same for an error that was reported already.
    fn deliver(&self, batch: BatchId, ready: Result<Ready<O>, Error>) -> bool {
        let passed_all = matches!(ready, Ok(Ready::Raw(_) | Ready::Finished(_)));
        let taken = self.put(batch, (Instant::now(), ready), |run, ready| run.ready.insert(batch.key.number, ready));
        self.for_consumers.notify_all();
        if !passed_all {
            self.for_step(Step::Pin).notify_one(); // the next batch to pin may have waited behind this one
        }
        taken
    }

    // The end.

    /// Whether no batch will come any more. Either a thread has died, or nobody waits and threads hang that the
    /// pipeline needs to go on.
    pub(crate) fn is_dead(&self) -> bool {
        let hung = || self.watch.is_hung() || (self.pool.is_used_up() && self.watch.hangs());
        self.pool.is_closed() || (self.epochs() == 0 && hung())
    }

    /// Ends every wait of every thread and consumer.
    pub(crate) fn close(&self) {
        let runs = {
            let mut state = self.lock();
            state.closed = true;
            for run in &state.runs {
                run.abandoned.store(true, Relaxed);
            }
            // Consumers that still wait find their runs with what is ready, but without what was on its way.
            let take = |run: &mut Run<O>| (run.epoch, (mem::take(&mut run.tasks), run.queues.take(None)));
            state.runs.iter_mut().map(take).collect::<Vec<_>>()
        };
        let conditions = [&self.for_workers, &self.for_resting, &self.for_consumers];
        for condition in conditions.into_iter().chain(&self.for_steps) {
            condition.notify_all();
        }
        self.pool.close();
        for (epoch, left_over) in runs {
            discard(Place::batch(Stage::Finish, BatchKey::new(epoch, 0)), left_over);
        }
    }
}

#[cfg(all(test, burn_pinned_loom))]
mod model;
