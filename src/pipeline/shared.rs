//! What the threads of a loader share: the epochs that run, their batches at every stage, and who waits for what.
//!
//! One lock guards all of it. It is held for moments only: user code, allocations and device calls run outside it.
//! Threads take their work from here, and nothing is pushed to a thread. So the permits of the pool limit every queue.

use super::epochs::{Epochs, Flow, Run, RunId, Work};
use crate::{
    batch::{Filled, Outcome, Ready, Source},
    device::{DeviceWindow, Uploader},
    fault::{Bad, Caught, Error, Watch, discard},
    memory::Pool,
    observe::{Counters, Entered, OnDevice},
    pipeline::tune::Tuning,
    sync::{Condvar, Mutex, MutexGuard},
    vocabulary::{Place, Stage},
};
use crossbeam::utils::CachePadded;
use std::{
    mem,
    sync::{
        Arc, PoisonError,
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
    pub(crate) watch: Arc<Watch>,
    pub(super) state: Mutex<Epochs<O>>,
    pub(super) for_workers: Condvar,
    /// Where workers sleep that `Auto` does not need.
    pub(super) for_resting: Condvar,
    pub(super) for_pin: Condvar,
    pub(super) for_transfer: Condvar,
    pub(super) for_consumers: Condvar,
    /// A running mean of the time that one row takes a worker, in nanoseconds.
    pub(super) row_ns: CachePadded<AtomicU64>,
}

impl<O> Pipeline<O> {
    pub(crate) fn new(source: Arc<dyn Source<O>>, pool: Arc<Pool>, flow: Flow, tuning: Option<Tuning>) -> Self {
        let device = Arc::new(DeviceWindow::new(flow.ahead() + 1)); // one more for the batch of the step, or it waits
        let watched = Arc::clone(&device) as Arc<dyn OnDevice>;
        pool.counters().watch_device(Arc::downgrade(&watched));
        Self {
            source,
            pool,
            device,
            watch: Arc::new(Watch::new(flow.timeout)),
            state: Mutex::new(Epochs::new(flow.workers)),
            flow,
            tuning,
            for_workers: Condvar::new(),
            for_resting: Condvar::new(),
            for_pin: Condvar::new(),
            for_transfer: Condvar::new(),
            for_consumers: Condvar::new(),
            row_ns: CachePadded::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Epochs<O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
            if !state.is_wanted(worker, self.flow.now.workers()) {
                if state.has_work(self.window(), &self.flow) {
                    self.for_workers.notify_one(); // this worker was woken for that work
                }
                state = self.for_resting.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if let Some(work) = state.take_work(worker, self.window(), &self.flow) {
                let more = state.has_work(self.window(), &self.flow);
                drop(state);
                if more {
                    self.for_workers.notify_one();
                }
                return Some(work);
            }
            state = self.for_workers.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    pub(super) fn window(&self) -> usize {
        self.flow.window(self.pool.limits().slots)
    }

    /// Notes how long a task took.
    pub(crate) fn ran(&self, rows: usize, time: Duration) {
        let row_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) / (rows as u64).max(1);
        let mean = self.row_ns.load(Relaxed);
        let mean = if mean == 0 { row_ns } else { (7 * mean + row_ns) / 8 };
        self.row_ns.store(mean.max(1), Relaxed); // workers that race may lose a sample; a mean allows that
    }

    /// Takes a filled batch to its next stage, with the record of its bad samples.
    pub(crate) fn filled(&self, id: RunId, number: usize, outcome: Outcome<O>, bad: Bad) {
        if !bad.is_empty() {
            self.hand(id, number, bad, |run, bad| run.bad.insert(number, bad));
        }
        let filled = match outcome {
            Outcome::Filled(filled) => filled,
            Outcome::Failed(error) => {
                self.put(id, number, Err(error)); // it was reported where it happened
                return;
            }
            Outcome::Empty => {
                self.put(id, number, Ok(Ready::Empty));
                return;
            }
        };
        if self.flow.transfers == 0 {
            let filled = if filled.needs_pin() { self.pin(id, filled) } else { Ok(filled) };
            let mut uploader = Uploader::burn(self.source.target());
            self.ready(id, number, filled.and_then(|filled| filled.send(&self.pool, &mut uploader)));
        } else if filled.needs_pin() {
            self.hand(id, number, filled, |run, filled| run.to_pin.insert(number, filled));
            self.for_pin.notify_one();
        } else {
            self.prepared(id, number, filled);
        }
    }

    /// Notes that a panic ended a worker's task.
    pub(crate) fn broke(&self, id: RunId, number: usize, worker: usize, Caught { message, trace }: Caught) {
        if self.lock().run(id).is_none() {
            return;
        }
        let place = Place { worker: Some(worker), ..Place::batch(Stage::Collate, id.epoch, number) };
        self.ready(id, number, Err(Error::Panicked { place, message, trace }));
    }

    /// Puts a part of a batch into its epoch; returns whether it was put there. If the epoch has ended or the batch was
    /// given up, the part is dropped outside the lock.
    fn hand<T>(&self, id: RunId, number: usize, value: T, put: impl FnOnce(&mut Run<O>, T) -> Option<T>) -> bool {
        let mut state = self.lock();
        let left_over = match state.run(id) {
            Some(run) if number >= run.delivered => put(run, value),
            _ => Some(value),
        };
        drop(state);
        let taken = left_over.is_none();
        discard(Place::batch(Stage::Finish, id.epoch, number), left_over);
        taken
    }

    /// Takes a batch that is ready for the link to the transfer stage.
    fn prepared(&self, id: RunId, number: usize, filled: Box<dyn Filled<O>>) {
        self.hand(id, number, filled, |run, filled| run.to_send.insert(number, filled));
        self.for_transfer.notify_one();
    }

    // The pin thread.

    /// Waits for a batch to prepare; returns `None` when the pipeline is closed.
    pub(crate) fn to_pin(&self) -> Option<(RunId, usize, Box<dyn Filled<O>>)> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            for run in &mut state.runs {
                if let Some((number, filled)) = run.take_to_pin() {
                    return Some((run.id, number, filled));
                }
            }
            state = self.for_pin.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Prepares a batch for the link.
    pub(crate) fn pin(&self, id: RunId, filled: Box<dyn Filled<O>>) -> Result<Box<dyn Filled<O>>, Error> {
        let batch = filled.at().key();
        let _entered = Entered::new(Stage::Pin, batch);
        let (pinned, start) = self.with_slot(batch, id, Run::next_in_pin, |wanted| filled.pin(&self.pool, wanted));
        self.counters().took(Stage::Pin, batch, start, Instant::now());
        pinned
    }

    /// Takes a prepared batch to the transfer stage.
    pub(crate) fn pinned(&self, id: RunId, number: usize, filled: Result<Box<dyn Filled<O>>, Error>) {
        match filled {
            Ok(filled) => self.prepared(id, number, filled),
            Err(error) => drop(self.ready(id, number, Err(error))),
        }
    }

    // Transfer threads.

    /// Returns the longest time that a consumer has waited for its next batch. Returns `None` when the pipeline is
    /// closed, or when nobody waits for this batch any more.
    pub(crate) fn starved(&self, id: RunId, number: usize) -> Option<Duration> {
        let state = self.lock();
        let waits = !state.closed && state.is_awaited((id, number));
        waits.then(|| state.runs.iter().map(Run::starved).max().unwrap_or_default())
    }

    /// The number of epochs in progress.
    pub(crate) fn epochs(&self) -> usize {
        self.lock().runs.len()
    }

    /// Waits for a batch that may go to the device; returns `None` when the pipeline is closed.
    pub(crate) fn to_send(&self) -> Option<(RunId, Place, Box<dyn Filled<O>>)> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(run) = state.runs.iter_mut().find(|run| run.can_send(self.flow.ahead()))
                && let Some((batch, filled)) = run.to_send.pop_first()
            {
                let place = Place::batch(Stage::Transfer, run.id.epoch, batch);
                let sendable = (run.id, place, filled);
                drop(state);
                self.for_workers.notify_one(); // a worker that rests may go on, and wakes the next
                return Some(sendable);
            }
            state = self.for_transfer.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Puts a batch, or its error, at its place for the consumer; returns whether there is one.
    pub(crate) fn ready(&self, id: RunId, number: usize, ready: Result<Ready<O>, Error>) -> bool {
        self.put(id, number, ready.inspect_err(|error| self.source.faults().saw(error)))
    }

    fn put(&self, id: RunId, number: usize, ready: Result<Ready<O>, Error>) -> bool {
        let filled = matches!(ready, Ok(Ready::Raw(_) | Ready::Done { .. }));
        let taken = self.hand(id, number, (Instant::now(), ready), |run, ready| run.ready.insert(number, ready));
        self.for_consumers.notify_all();
        if !filled {
            self.for_pin.notify_one(); // the next batch to pin may have waited behind this one
        }
        taken
    }

    // The end.

    /// Whether no batch will come any more. Either a thread has died, or nobody waits and threads hang that the
    /// pipeline needs to go on.
    pub(crate) fn is_dead(&self) -> bool {
        let stuck = || self.watch.is_stuck() || (self.pool.is_used_up() && self.watch.hangs());
        self.pool.is_closed() || (self.epochs() == 0 && stuck())
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
            let take = |run: &mut Run<O>| {
                (run.id, (mem::take(&mut run.tasks), mem::take(&mut run.to_pin), mem::take(&mut run.to_send)))
            };
            state.runs.iter_mut().map(take).collect::<Vec<_>>()
        };
        let waits = [&self.for_workers, &self.for_resting, &self.for_pin, &self.for_transfer, &self.for_consumers];
        for waiting in waits {
            waiting.notify_all();
        }
        self.pool.close();
        let place = |id: RunId| Place::batch(Stage::Finish, id.epoch, 0);
        runs.into_iter().for_each(|(id, left_over)| discard(place(id), left_over));
    }
}

#[cfg(all(test, burn_pinned_loom))]
mod model;
