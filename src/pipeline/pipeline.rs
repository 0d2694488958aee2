//! The shared state of the threads of one copy of a loader: the epochs in progress behind one lock, the slots, the
//! device.
//!
//! The lock is held only briefly: user code, allocations, device calls and drops of slots happen outside it. Threads
//! take their work from the state, and nothing is pushed to a thread. So the permits of the pool limit every queue.

use super::state::{Depth, State};
use crate::{
    batch::{Batch, BatchState, Queue, Source},
    device::{DeviceWindow, TransferState, Uploader},
    fault::{Error, Panic, Watch, discard, discard_each, during},
    memory::{Pool, Wait},
    observe::{Counters, StageGuard},
    sync::{Condvar, Mutex, MutexGuard},
    vocabulary::{BatchKey, Place, Stage},
};
use crossbeam_utils::CachePadded;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// The settings of a pipeline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Batches ready ahead of the step.
    pub(crate) prefetch: usize,
    /// Threads that copy to the device. With none, as on a CPU backend, the worker that ends a batch also does the rest.
    /// There is no copy to wait for then.
    pub(crate) transfers: usize,
    /// How long `next()` waits for a batch before the epoch ends.
    pub(crate) timeout: Option<Duration>,
    /// How long `next()` waits for a slot.
    pub(crate) lease_timeout: Duration,
    /// The number of the device among those that the loader is cut for.
    pub(crate) device: Option<u16>,
}

/// One copy of a loader at work, without its threads.
#[derive(derive_more::Debug)]
#[debug("Pipeline {{ settings: {settings:?}, .. }}")]
pub(crate) struct Pipeline<O> {
    pub(crate) settings: Settings,
    pub(crate) source: Arc<dyn Source<O>>,
    pub(crate) pool: Arc<Pool>,
    pub(super) window: Arc<DeviceWindow>,
    /// Device memory that the transfer threads share.
    pub(super) transfers: TransferState,
    pub(super) watch: Watch,
    state: Mutex<State<O>>,
    pub(super) for_workers: Condvar,
    for_queues: [Condvar; Queue::COUNT],
    pub(super) for_consumers: Condvar,
    /// A running mean of the time that one row takes a worker, in nanoseconds.
    row_ns: CachePadded<AtomicU64>,
    /// The time that tasks took, in nanoseconds.
    worked_ns: CachePadded<AtomicU64>,
    /// Whether one worker made the last batch alone, in no more time than it takes to wake another.
    is_small: AtomicBool,
    /// The workers in a task.
    pub(super) busy: CachePadded<AtomicUsize>,
    /// Whether an epoch has ended because a call hangs.
    pub(super) hung: AtomicBool,
}

impl<O: Send + 'static> Pipeline<O> {
    pub(crate) fn new(settings: Settings, source: Arc<dyn Source<O>>, pool: Arc<Pool>) -> Arc<Self> {
        let depth = Depth { prefetch: settings.prefetch, slots: pool.limits().slots };
        let transfers = TransferState::default();
        let (looks, hurries) = (transfers.clone(), transfers.clone());
        // One more than the batches ahead: the batch of the running step is on the device too.
        let window = DeviceWindow::new(
            depth.on_device() + 1,
            move |urgent| looks.find_free(urgent),
            move || hurries.make_room(),
        );
        let window = Arc::new(window);
        pool.counters().watch_device(Arc::downgrade(&window) as _);
        let pipeline = Arc::new(Self {
            settings,
            source,
            pool,
            window,
            transfers,
            watch: Watch::new(settings.timeout),
            state: Mutex::new(State::new(depth)),
            for_workers: Condvar::new(),
            for_queues: Default::default(),
            for_consumers: Condvar::new(),
            row_ns: CachePadded::default(),
            worked_ns: CachePadded::default(),
            is_small: AtomicBool::new(false),
            busy: CachePadded::default(),
            hung: AtomicBool::new(false),
        });
        let told = Arc::downgrade(&pipeline);
        let came_back = move || told.upgrade().iter().for_each(|pipeline| pipeline.permit_came_back());
        pipeline.pool.tell(came_back, pipeline.source.slot_bytes());
        pipeline
    }
}

/// The approximate time that a task should take: long compared with a lock, short compared with a batch.
const TASK_NS: u64 = 200_000;
/// A sleeping worker needs about this long to wake up.
const SMALL: Duration = Duration::from_micros(50);
/// With many workers a task takes longer: this much for each worker. So they wait less for the lock.
const TASK_NS_PER_WORKER: u64 = 25_000;

impl<O> Pipeline<O> {
    pub(super) fn lock(&self) -> MutexGuard<'_, State<O>> {
        self.state.lock()
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.pool.counters()
    }

    /// Whether the worker that ends a batch also does the rest, as on a CPU backend.
    pub(super) fn is_host(&self) -> bool {
        self.settings.transfers == 0
    }

    /// Where the threads of a queue sleep.
    pub(super) fn for_queue(&self, queue: Queue) -> &Condvar {
        &self.for_queues[queue as usize]
    }

    /// Waits until `take` finds something in a queue; returns `None` when the pipeline is closed.
    pub(super) fn wait_for<T>(&self, queue: Queue, take: impl Fn(&mut State<O>) -> Option<T>) -> Option<T> {
        let mut state = self.lock();
        while !state.is_closed() {
            if let Some(found) = take(&mut state) {
                return Some(found);
            }
            state = self.for_queue(queue).wait(state);
        }
        None
    }

    /// Whether to wake a worker that sleeps because no permit was free or enough batches were open ahead of the consumer. Waking a worker
    /// costs as much as making a small batch. So if batches are small, none is woken before half of them are taken. With an accelerator,
    /// other threads also work on a batch, which is not measured here, so there batches never count as small.
    pub(super) fn wants_worker(&self, state: &State<O>) -> bool {
        state.has_work_for_sleepers(self.pool.has_permit(), self.is_small.load(Relaxed))
    }

    // A batch on its way.

    /// Notes how long a task took.
    pub(super) fn note_task_time(&self, rows: usize, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.worked_ns.fetch_add(ns, Relaxed);
        let (row_ns, mean) = (ns / (rows as u64).max(1), self.row_ns.load(Relaxed));
        let mean = if mean == 0 { row_ns } else { (7 * mean + row_ns) / 8 };
        self.row_ns.store(mean.max(1), Relaxed); // workers that race may lose a sample; a mean allows that
    }

    /// Notes how long one worker took for all rows of a batch and the work after them. With an accelerator, other threads continue the
    /// batch, so there none counts as small.
    pub(super) fn note_batch_time(&self, time: Duration) {
        let is_small = self.is_host() && time <= SMALL;
        if self.is_small.load(Relaxed) != is_small {
            self.is_small.store(is_small, Relaxed);
        }
    }

    /// The time that all tasks together took so far.
    pub(super) fn worked(&self) -> Duration {
        Duration::from_nanos(self.worked_ns.load(Relaxed))
    }

    /// The number of rows per task: enough for [`TASK_NS`], by what rows have cost so far. With many workers it is more,
    /// as long as each of them still gets a task of the batch. At first each worker gets two shares of the batch, so that
    /// the first batch comes soon. Where rows take very different times, tasks stay short, so that few rows wait behind a
    /// slow one. This number changes the speed and nothing else.
    pub(super) fn chunk(&self, rows: usize, workers: usize) -> usize {
        let by_time = match self.row_ns.load(Relaxed) {
            0 => rows.div_ceil(2 * workers.max(1)),
            row_ns => {
                let of = |ns: u64| usize::try_from(ns / row_ns).unwrap_or(usize::MAX);
                let most = if self.source.is_uneven() { 0 } else { rows.div_ceil(workers.max(1)) };
                of(TASK_NS).max(of(TASK_NS_PER_WORKER * workers as u64).min(most))
            }
        };
        by_time.clamp(1, rows.max(1))
    }

    /// The state of a batch after some work on it. An error is reported here.
    pub(super) fn reported(&self, state: Result<BatchState<O>, Error>) -> BatchState<O> {
        state.inspect_err(|error| self.source.faults().saw(error)).unwrap_or_else(BatchState::Failed)
    }

    /// Notes that a panic ended a worker's task.
    pub(super) fn fail_batch(&self, batch: BatchKey, worker: usize, Panic { message, trace }: Panic) {
        let rest = self.lock().drop_tasks(batch);
        discard_each(Place::batch(Stage::Finish, batch), rest);
        let place = Place { worker: Some(worker), ..Place::batch(Stage::Collate, batch) };
        let error = Error::Panicked { place, message, trace };
        self.source.faults().saw(&error);
        self.pass(Batch::failed(batch, error));
    }

    /// Passes on a batch: into the queue for its state, or to the consumer. Returns whether it is still wanted.
    pub(super) fn pass(&self, batch: Batch<O>) -> bool {
        let batch = if self.is_host() { self.finish_on_host(batch) } else { batch };
        let (key, queue) = (batch.key, batch.queue());
        let has_passed_pin = matches!(batch.state, BatchState::OnDevice(_) | BatchState::Ready { .. });
        let left_over = self.lock().put(batch, Instant::now());
        match queue {
            Some(queue) => self.for_queue(queue).notify_one(),
            None => self.for_consumers.notify_all(),
        }
        if queue.is_none() && !has_passed_pin {
            self.for_queue(Queue::Pin).notify_one(); // the next batch to pin may have waited behind this one
        }
        let taken = left_over.is_none();
        discard(Place::batch(Stage::Finish, key), left_over);
        taken
    }

    /// Does the rest of the work on a batch, as workers do on a CPU backend.
    fn finish_on_host(&self, batch: Batch<O>) -> Batch<O> {
        let never = AtomicBool::new(false); // these stages need no memory, so nothing waits
        let Batch { key, state, skips } = self.pin(batch, &never);
        let BatchState::Pinned(content) = state else { return Batch { key, state, skips } };
        let sent = self.source.send(content, &self.pool, &mut Uploader::burn(self.source.target()));
        let finished = sent.and_then(|state| match state {
            BatchState::OnDevice(content) => self.source.finish(*content),
            state => Ok(state),
        });
        Batch { key, state: self.reported(finished), skips }
    }

    /// Prepares a batch for the copy to the device, if needed.
    pub(super) fn pin(&self, batch: Batch<O>, abandoned: &AtomicBool) -> Batch<O> {
        let Batch { key, state, skips } = batch;
        let BatchState::Filled(content) = state else { return Batch { key, state, skips } };
        let _entered = StageGuard::new(Stage::Pin, key);
        let (pinned, start) = self.with_slot(key, abandoned, |wait| self.source.pin(content, &self.pool, wait));
        self.counters().took(Stage::Pin, key, start, Instant::now());
        Batch { key, state: self.reported(pinned.map(BatchState::Pinned)), skips }
    }

    /// Does work that may have to wait for a slot's memory, until the epoch ends. The wait is counted separately.
    /// Returns also the start of the work, moved forward by the time of the wait.
    pub(super) fn with_slot<T>(
        &self,
        batch: BatchKey,
        ended: &AtomicBool,
        work: impl FnOnce(&Wait<'_>) -> T,
    ) -> (T, Instant) {
        let (start, wait) = (Instant::now(), Wait::until_ended(ended));
        let done = during(Place::batch(Stage::SlotWait, batch), || work(&wait));
        let rest = start + wait.took();
        if rest > start {
            self.counters().took(Stage::SlotWait, batch, start, rest);
        }
        (done, rest)
    }

    /// Notes that the calling thread is done with an epoch, and releases device memory that is no longer needed.
    pub(crate) fn rest(&self) {
        let is_idle = self.lock().epochs() == 0;
        self.transfers.end_epoch(is_idle.then(|| self.window.most(1)));
    }

    /// Returns the longest time that a consumer has waited for its next batch, or `None` if no consumer waits for `batch`.
    pub(super) fn starved(&self, batch: BatchKey) -> Option<Duration> {
        let state = self.lock();
        state.is_awaited(batch).then(|| state.starved(Instant::now()))
    }

    // The end.

    /// Whether the next epoch needs new threads: one of these has died, or hangs.
    pub(crate) fn is_dead(&self) -> bool {
        self.hung.load(Relaxed) || self.lock().is_closed()
    }

    /// Ends every wait of the threads and consumers, and frees what memory is free.
    pub(crate) fn close(&self) {
        let (tasks, queued) = self.lock().close();
        self.for_workers.notify_all();
        self.for_consumers.notify_all();
        for queue in &self.for_queues {
            queue.notify_all();
        }
        self.pool.close();
        let place = Place::batch(Stage::Finish, BatchKey::NONE);
        discard_each(place, tasks);
        discard_each(place, queued);
    }
}

impl<O: Send + 'static> Pipeline<O> {
    /// Wakes a worker, because a permit may have come back to the pool.
    fn permit_came_back(&self) {
        let wanted = self.wants_worker(&self.lock()); // a worker that has seen no permit sleeps by now
        if wanted {
            self.for_workers.notify_one();
        }
    }
}

#[cfg(all(test, burn_pinned_loom))]
mod model;
