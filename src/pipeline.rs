//! What the threads of a loader share: the epochs that run, their batches at every stage, and who waits for what.
//!
//! One lock guards all of it and is held for moments only: user code, allocations and device calls run outside. Threads pull
//! their work from here; nothing is pushed to a thread, so every queue is bounded by the permits of the pool.

use crate::{
    error::{BoxError, Error, Place, Stage},
    pool::{Permit, Pool},
    sample::{BatchPlan, guard},
    source::{Filled, Ready, Source, Task},
    stats::Counters,
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// A task should take about this long: long against a lock, short against a batch.
const TASK_NS: u64 = 200_000;
/// How often the wait for a permit looks whether it is still wanted.
const TICK: Duration = Duration::from_millis(50);

/// The fixed choices of a pipeline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flow {
    pub(crate) workers: usize,
    /// With none, as on a CPU backend, the workers do the transfer stage too: there is no copy to wait for.
    pub(crate) transfers: usize,
    /// Batches ready on the device ahead of the step.
    pub(crate) prefetch: usize,
    pub(crate) lease_timeout: Duration,
}

/// The indices of an epoch that are still to come.
pub(crate) struct Order {
    pub(crate) indices: Box<dyn Iterator<Item = usize> + Send>,
    pub(crate) batch_size: usize,
    /// Indices still to give.
    pub(crate) left: usize,
    /// Indices given.
    pub(crate) given: usize,
}

/// Which epoch of this pipeline a batch belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunId(u64);

/// One epoch in progress.
struct Run<O> {
    id: RunId,
    epoch: usize,
    /// Absent while a worker opens a batch, and when no batch is left to open.
    order: Option<Order>,
    batches: usize,
    opened: usize,
    delivered: usize,
    tasks: VecDeque<Box<dyn Task<O>>>,
    /// The batch that `tasks` are of.
    tasks_of: usize,
    to_pin: VecDeque<(usize, Filled<O>)>,
    to_send: BTreeMap<usize, Filled<O>>,
    ready: BTreeMap<usize, Result<Ready<O>, Error>>,
    /// Since when the consumer has waited for the next batch.
    waiting: Option<Instant>,
    abandoned: Arc<AtomicBool>,
}

struct State<O> {
    runs: Vec<Run<O>>,
    next_id: u64,
    /// A worker is opening a batch; the others wait for its tasks.
    opening: bool,
    closed: bool,
}

/// Work for a worker.
pub(crate) enum Work<O> {
    /// Some rows of a batch.
    Task { run: RunId, number: usize, task: Box<dyn Task<O>> },
    /// A batch is to be opened: see [`Pipeline::open`].
    Open,
    /// A filled batch may go to the device.
    Send(Sendable<O>),
}

/// A filled batch that may go to the device.
pub(crate) struct Sendable<O> {
    pub(crate) run: RunId,
    pub(crate) place: Place,
    pub(crate) filled: Filled<O>,
}

/// A batch that is being opened: an epoch has lent its order for it.
struct Opening {
    run: RunId,
    epoch: usize,
    number: usize,
    order: Order,
    abandoned: Arc<AtomicBool>,
    /// The permit, or why none came.
    permit: Result<Permit, Error>,
}

pub(crate) struct Pipeline<O> {
    pub(crate) source: Arc<dyn Source<O>>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) flow: Flow,
    pub(crate) counters: Arc<Counters>,
    state: Mutex<State<O>>,
    for_workers: Condvar,
    for_pin: Condvar,
    for_transfer: Condvar,
    for_consumers: Condvar,
    /// A running mean of what one row costs a worker.
    row_ns: AtomicU64,
}

impl<O> State<O> {
    fn run(&mut self, id: RunId) -> Option<&mut Run<O>> {
        self.runs.iter_mut().find(|run| run.id == id)
    }

    fn has_work(&self, flow: &Flow) -> bool {
        let sends = flow.transfers == 0;
        let has =
            |run: &Run<O>| !run.tasks.is_empty() || (!self.opening && run.can_open()) || (sends && run.can_send(flow));
        self.runs.iter().any(has)
    }

    /// Finished batches first, then rows of an open batch, then a new batch.
    fn take_work(&mut self, flow: &Flow) -> Option<Work<O>> {
        if flow.transfers == 0
            && let Some(sendable) = self.take_sendable(flow)
        {
            return Some(Work::Send(sendable));
        }
        for run in &mut self.runs {
            if let Some(task) = run.tasks.pop_front() {
                return Some(Work::Task { run: run.id, number: run.tasks_of, task });
            }
        }
        if self.opening || !self.runs.iter().any(Run::can_open) {
            return None;
        }
        self.opening = true;
        Some(Work::Open)
    }

    fn take_sendable(&mut self, flow: &Flow) -> Option<Sendable<O>> {
        let run = self.runs.iter_mut().find(|run| run.can_send(flow))?;
        let (batch, filled) = run.to_send.pop_first()?;
        let place = Place { stage: Stage::Transfer, epoch: run.epoch, batch, worker: None, index: None };
        Some(Sendable { run: run.id, place, filled })
    }
}

impl<O> Run<O> {
    fn can_open(&self) -> bool {
        self.order.is_some() && self.opened < self.batches
    }

    /// No more than `prefetch` batches are on the device ahead of the step.
    fn can_send(&self, flow: &Flow) -> bool {
        self.to_send.first_key_value().is_some_and(|(number, _)| *number < self.delivered + flow.prefetch)
    }

    /// How long the consumer has waited with nothing on its way.
    fn starved(&self) -> Duration {
        let waiting = self.waiting.filter(|_| self.opened == self.delivered);
        waiting.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

impl<O> Pipeline<O> {
    pub(crate) fn new(source: Arc<dyn Source<O>>, pool: Arc<Pool>, flow: Flow, counters: Arc<Counters>) -> Self {
        Self {
            source,
            pool,
            flow,
            counters,
            state: Mutex::new(State { runs: Vec::new(), next_id: 0, opening: false, closed: false }),
            for_workers: Condvar::new(),
            for_pin: Condvar::new(),
            for_transfer: Condvar::new(),
            for_consumers: Condvar::new(),
            row_ns: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The consumer.

    /// Starts an epoch of `batches` batches.
    pub(crate) fn start(&self, epoch: usize, order: Order, batches: usize) -> RunId {
        let mut state = self.lock();
        let id = RunId(state.next_id);
        state.next_id += 1;
        state.runs.push(Run {
            id,
            epoch,
            order: Some(order).filter(|_| batches > 0),
            batches,
            opened: 0,
            delivered: 0,
            tasks: VecDeque::new(),
            tasks_of: 0,
            to_pin: VecDeque::new(),
            to_send: BTreeMap::new(),
            ready: BTreeMap::new(),
            waiting: None,
            abandoned: Arc::default(),
        });
        drop(state);
        self.for_workers.notify_one();
        id
    }

    /// The next batch of an epoch in order, or its error; waits for it. `None` at the epoch's end.
    pub(crate) fn next(&self, id: RunId) -> Option<Result<Ready<O>, Error>> {
        let mut state = self.lock();
        loop {
            let closed = state.closed;
            let run = state.run(id)?;
            if run.delivered == run.batches {
                return None;
            }
            if let Some(ready) = run.ready.remove(&run.delivered) {
                run.delivered += 1;
                run.waiting = None;
                drop(state);
                self.notify_sender();
                return Some(ready);
            }
            if closed {
                run.delivered = run.batches;
                return Some(Err(Error::Ended));
            }
            run.waiting.get_or_insert_with(Instant::now);
            state = self.for_consumers.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends an epoch, finished or not: what is on its way is dropped.
    pub(crate) fn end(&self, id: RunId) {
        let mut state = self.lock();
        let run = state.runs.iter().position(|run| run.id == id).map(|at| state.runs.swap_remove(at));
        drop(state);
        if let Some(run) = &run {
            run.abandoned.store(true, Relaxed);
        }
        drop(run); // slots go home here, outside the lock
    }

    // Workers.

    /// Waits for work; `None` when the pipeline is closed.
    pub(crate) fn work(&self) -> Option<Work<O>> {
        let mut state = self.lock();
        while !state.closed {
            if let Some(work) = state.take_work(&self.flow) {
                let more = state.has_work(&self.flow);
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

    /// Opens the next batch of some epoch: waits for a permit, takes the batch's indices, gives it a slot and cuts it into tasks.
    /// One worker at a time does this; meanwhile the others find no work but that of open batches.
    pub(crate) fn open(&self) {
        let Some(mut opening) = self.choose() else { return };
        let tasks = self.cut(&mut opening);
        let Opening { run: id, number, order, .. } = opening;
        let mut state = self.lock();
        state.opening = false;
        let (mut count, mut left_over) = (0, None);
        match (state.run(id), tasks) {
            (Some(run), tasks) => {
                run.opened += 1;
                run.order = Some(order);
                match tasks {
                    Ok(tasks) => (count, run.tasks, run.tasks_of) = (tasks.len(), tasks.into(), number),
                    Err(error) => drop(run.ready.insert(number, Err(error))),
                }
            }
            (None, tasks) => left_over = Some((order, tasks)), // the consumer has gone meanwhile
        }
        drop(state);
        drop(left_over);
        (0..count.clamp(1, self.flow.workers)).for_each(|_| self.for_workers.notify_one());
        if count == 0 {
            self.for_consumers.notify_all();
        }
    }

    /// Waits for a permit, then picks the epoch that gets it: the one with the fewest batches on their way. An epoch whose
    /// consumer has waited too long with nothing on its way gets an error instead. `None` once no epoch has a batch to open.
    fn choose(&self) -> Option<Opening> {
        loop {
            let permit = self.pool.permit(TICK);
            let mut state = self.lock();
            // An only worker must not wait here while a batch that it could hand over holds the permit.
            let sends = self.flow.transfers == 0 && state.runs.iter().any(|run| run.can_send(&self.flow));
            if permit.is_none() && sends {
                state.opening = false;
                return None;
            }
            let limit = self.flow.lease_timeout;
            let open = state.runs.iter_mut().filter(|run| run.can_open());
            let run = match permit {
                Some(_) => open.min_by_key(|run| run.opened - run.delivered),
                None => open.max_by_key(|run| run.starved()),
            };
            let Some(run) = run.filter(|_| !self.pool.is_closed()) else {
                state.opening = false;
                return None;
            };
            let permit = match permit {
                Some(permit) => Ok(permit),
                None if run.starved() > limit => {
                    Err(Error::LeaseTimeout { waited: run.starved(), slots: self.pool.limits().slots })
                }
                None => continue,
            };
            let order = run.order.take()?;
            let abandoned = Arc::clone(&run.abandoned);
            return Some(Opening { run: run.id, epoch: run.epoch, number: run.opened, order, abandoned, permit });
        }
    }

    /// Takes the batch's indices and cuts it into tasks.
    fn cut(&self, opening: &mut Opening) -> Result<Vec<Box<dyn Task<O>>>, Error> {
        let Opening { epoch, number, order, .. } = opening;
        let place = Place { stage: Stage::Sampler, epoch: *epoch, batch: *number, worker: None, index: None };
        let rows = order.batch_size.min(order.left);
        order.left -= rows;
        let indices = guard(place, || Ok::<Vec<usize>, BoxError>(order.indices.by_ref().take(rows).collect()))?;
        order.given += indices.len();
        if indices.len() < rows {
            let promised = order.given + rows - indices.len() + order.left;
            return Err(Error::SamplerEnded { place, got: order.given, promised });
        }
        let permit = std::mem::replace(&mut opening.permit, Err(Error::Ended))?;
        let abandoned = Arc::clone(&opening.abandoned);
        let plan = Arc::new(BatchPlan { epoch: *epoch, number: *number, indices, abandoned });
        Arc::clone(&self.source).open(plan, permit, &self.pool, self.chunk(rows))
    }

    /// Rows a task: enough for [`TASK_NS`] by what rows have cost so far. At first each worker gets two shares of the batch, so
    /// that the first batch comes soon. Decides nothing but speed.
    fn chunk(&self, rows: usize) -> usize {
        let by_time = match self.row_ns.load(Relaxed) {
            0 => rows.div_ceil(2 * self.flow.workers),
            row_ns => usize::try_from(TASK_NS / row_ns).unwrap_or(usize::MAX),
        };
        by_time.clamp(1, rows.max(1))
    }

    /// Notes what a task cost.
    pub(crate) fn timed(&self, rows: usize, time: Duration) {
        let row_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) / (rows as u64).max(1);
        let mean = self.row_ns.load(Relaxed);
        let mean = if mean == 0 { row_ns } else { (7 * mean + row_ns) / 8 };
        self.row_ns.store(mean.max(1), Relaxed); // racing workers may lose a sample: it is a mean
    }

    /// Takes a filled batch to its next stage.
    pub(crate) fn filled(&self, id: RunId, number: usize, filled: Filled<O>) {
        if let Filled::Failed(error) = filled {
            return self.ready(id, number, Err(error));
        }
        let mut state = self.lock();
        let Some(run) = state.run(id) else {
            drop(state);
            return drop(filled);
        };
        if self.source.needs_pin() {
            run.to_pin.push_back((number, filled));
            drop(state);
            self.for_pin.notify_one();
        } else {
            run.to_send.insert(number, filled);
            drop(state);
            self.notify_sender();
        }
    }

    // The pin thread.

    /// Waits for a batch to prepare; `None` when the pipeline is closed.
    pub(crate) fn to_pin(&self) -> Option<(RunId, usize, Filled<O>)> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            for run in &mut state.runs {
                if let Some((number, filled)) = run.to_pin.pop_front() {
                    return Some((run.id, number, filled));
                }
            }
            state = self.for_pin.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes a prepared batch to the transfer stage.
    pub(crate) fn pinned(&self, id: RunId, number: usize, filled: Result<Filled<O>, Error>) {
        match filled {
            Err(error) | Ok(Filled::Failed(error)) => self.ready(id, number, Err(error)),
            Ok(filled) => {
                let mut state = self.lock();
                let left_over = match state.run(id) {
                    Some(run) => run.to_send.insert(number, filled),
                    None => Some(filled),
                };
                drop(state);
                drop(left_over);
                self.notify_sender();
            }
        }
    }

    // Transfer threads.

    /// Waits for a batch that may go to the device; `None` when the pipeline is closed.
    pub(crate) fn to_send(&self) -> Option<Sendable<O>> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(sendable) = state.take_sendable(&self.flow) {
                return Some(sendable);
            }
            state = self.for_transfer.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes a thread that sends.
    fn notify_sender(&self) {
        let senders = if self.flow.transfers == 0 { &self.for_workers } else { &self.for_transfer };
        senders.notify_one();
    }

    /// Puts a batch, or its error, at its place for the consumer.
    pub(crate) fn ready(&self, id: RunId, number: usize, ready: Result<Ready<O>, Error>) {
        let mut state = self.lock();
        let left_over = match state.run(id) {
            Some(run) => run.ready.insert(number, ready),
            None => Some(ready),
        };
        drop(state);
        drop(left_over);
        self.for_consumers.notify_all();
    }

    // The end.

    /// Ends every wait of every thread and consumer.
    pub(crate) fn close(&self) {
        let runs = {
            let mut state = self.lock();
            state.closed = true;
            for run in &state.runs {
                run.abandoned.store(true, Relaxed);
            }
            // Consumers that still wait find their runs, without what was on its way.
            state
                .runs
                .iter_mut()
                .map(|run| (std::mem::take(&mut run.tasks), std::mem::take(&mut run.to_send)))
                .collect::<Vec<_>>()
        };
        for waiting in [&self.for_workers, &self.for_pin, &self.for_transfer, &self.for_consumers] {
            waiting.notify_all();
        }
        self.pool.close();
        drop(runs);
    }
}
