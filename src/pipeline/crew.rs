//! The workers of a loader and of all its copies, and what they share: one lock over the epochs of all of them.
//!
//! The lock is held for moments only: user code, allocations and device calls run outside it. Workers take their work
//! from here, and nothing is pushed to a thread. They go where a batch is needed first.

use super::{
    branch::Branch,
    epochs::{Epochs, Work},
    flow::Flow,
    run::Run,
    tune::Tuning,
};
use crate::{
    device::node_here,
    fault::{Watch, discard},
    memory::AwaitsPermits,
    observe::CopyId,
    sync::{Condvar, Mutex, MutexGuard},
    vocabulary::{BatchKey, Place, Stage},
};
use crossbeam_utils::CachePadded;
use std::{
    fmt, mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// The time that a task should take, about. It is long compared with a lock and short compared with a batch.
const TASK_NS: u64 = 200_000;
/// With many workers a task takes longer: this much for each worker. So they wait less for the lock.
const TASK_NS_PER_WORKER: u64 = 25_000;

pub(crate) struct Crew<O> {
    pub(crate) flow: Flow,
    tuning: Option<Tuning>,
    pub(super) watch: Arc<Watch>,
    state: Mutex<Epochs<O>>,
    pub(super) for_workers: Condvar,
    /// Where workers sleep that `Auto` does not need.
    pub(super) for_resting: Condvar,
    /// A running mean of the time that one row takes a worker, in nanoseconds.
    row_ns: CachePadded<AtomicU64>,
}

impl<O> fmt::Debug for Crew<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("flow", &self.flow).finish_non_exhaustive()
    }
}

impl<O> Crew<O> {
    pub(crate) fn new(flow: Flow, tuning: Option<Tuning>) -> Self {
        Self {
            watch: Arc::new(Watch::new(flow.timeout)),
            state: Mutex::new(Epochs::new(flow.workers)),
            flow,
            tuning,
            for_workers: Condvar::new(),
            for_resting: Condvar::new(),
            row_ns: CachePadded::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Epochs<O>> {
        self.state.lock()
    }

    /// Waits for work for a worker that has nothing in hand; returns `None` when the crew is dismissed.
    pub(crate) fn work(&self, worker: usize) -> Option<Work<O>> {
        let mut asked = Instant::now();
        let mut state = self.lock();
        state.puts_down(worker);
        while !state.closed {
            let patience = state.patience();
            // Each sleep ends. If only workers at work watched a consumer's patience, all of them might hang.
            let sleep = patience.unwrap_or(self.flow.lease_timeout);
            if !sleep.is_zero() && !state.is_at_work(worker, state.at_work(&self.flow)) {
                if patience.is_some() || state.has_work(&self.flow) {
                    self.for_workers.notify_one(); // this worker was woken for that
                }
                state.resting += 1;
                self.for_resting.wait_for(&mut state, sleep);
                state.resting -= 1;
                asked = Instant::now();
                continue;
            }
            let node = if state.has_nodes() { node_here() } else { None };
            if let Some(work) = state.take_work(worker, node, &self.flow, asked) {
                let more = state.has_work(&self.flow);
                drop(state);
                if more {
                    self.for_workers.notify_one();
                }
                return Some(work);
            }
            self.for_workers.wait_for(&mut state, sleep);
        }
        None
    }

    /// Notes how long a task took.
    pub(crate) fn ran(&self, rows: usize, time: Duration) {
        let row_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) / (rows as u64).max(1);
        let mean = self.row_ns.load(Relaxed);
        let mean = if mean == 0 { row_ns } else { (7 * mean + row_ns) / 8 };
        self.row_ns.store(mean.max(1), Relaxed); // workers that race may lose a sample; a mean allows that
    }

    /// The number of rows per task: enough for [`TASK_NS`], by what rows have cost so far. With many workers it is more, as
    /// long as each of them still gets a task of the batch. At first each worker gets two shares of the batch, so that the
    /// first batch comes soon. Where rows take very different times (`uneven`), tasks stay short, so that few rows
    /// wait behind a slow one. This number changes the speed and nothing else.
    pub(super) fn chunk(&self, rows: usize, uneven: bool) -> usize {
        let workers = self.flow.now.workers();
        let by_time = match self.row_ns.load(Relaxed) {
            0 => rows.div_ceil(2 * workers),
            row_ns => {
                let of = |ns: u64| usize::try_from(ns / row_ns).unwrap_or(usize::MAX);
                let most = if uneven { 0 } else { rows.div_ceil(workers) };
                of(TASK_NS).max(of(TASK_NS_PER_WORKER * workers as u64).min(most))
            }
        };
        by_time.clamp(1, rows.max(1))
    }

    /// Notes how long the consumer of a copy waited for a batch, and what its step before took, if that is a measure. The
    /// tuning goes by that; returns whether it has changed anything.
    pub(super) fn handed(&self, copy: CopyId, waited: Duration, stepped: Option<Duration>) -> bool {
        let changed = self.tuning.as_ref().is_some_and(|tuning| tuning.delivered(copy, waited, stepped));
        if changed {
            self.recall();
        }
        changed
    }

    /// Whether some workers rest at times.
    pub(super) fn tunes(&self) -> bool {
        self.tuning.is_some()
    }

    /// Wakes the workers that rest, since a consumer has called all.
    pub(super) fn called(&self) {
        self.tuning.iter().for_each(Tuning::called);
        self.recall();
    }

    /// Makes another number of workers at work take effect.
    pub(super) fn recall(&self) {
        drop(self.lock()); // a worker that was about to rest now rests, or sees the change
        self.for_resting.notify_all();
    }

    /// Whether the workers were dismissed.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Whether no worker will do anything any more: they were dismissed, or all of them hang.
    pub(crate) fn is_dead(&self) -> bool {
        self.is_closed() || self.watch.is_hung()
    }

    /// Dismisses the workers, and ends every wait for them.
    pub(crate) fn close(&self) {
        let branches = {
            let mut state = self.lock();
            state.closed = true;
            state.runs.iter().map(|run| Arc::clone(&run.of)).collect::<Vec<_>>()
        };
        self.for_workers.notify_all();
        self.for_resting.notify_all();
        branches.iter().for_each(|branch| self.close_branch(branch));
    }

    /// Ends every wait of the threads and consumers of one copy.
    pub(super) fn close_branch(&self, branch: &Branch<O>) {
        let left_over = {
            let mut state = self.lock();
            branch.set_closed();
            // Consumers that still wait find their runs with what is ready, but without what was on its way.
            let take = |run: &mut Run<O>| {
                run.abandoned.store(true, Relaxed);
                (mem::take(&mut run.tasks), run.queues.take(None))
            };
            state.runs_of_mut(branch).map(take).collect::<Vec<_>>()
        };
        branch.for_consumers.notify_all();
        branch.wake_steps();
        branch.pool.close();
        discard(Place::batch(Stage::Finish, BatchKey::NONE), left_over);
    }
}

impl<O: Send + 'static> AwaitsPermits for Crew<O> {
    fn permit_came_back(&self) {
        let mut state = self.lock(); // a worker that has seen no permit sleeps by now
        let starts = state.runs.iter().find(|run| run.needs_all()).map(|run| Arc::clone(&run.of));
        if let Some(branch) = &starts {
            state.count(&self.flow, branch.pool.counters());
        }
        let wakes = starts.is_some() && state.resting > 0; // the permit lets an epoch start, and that is for all
        drop(state);
        self.for_workers.notify_one();
        if wakes {
            self.for_resting.notify_all();
        }
    }
}

#[cfg(test)]
mod tests;
