//! What the threads of a loader share: the epochs that run, their batches at every stage, and who waits for what.
//!
//! One lock guards all of it and is held for moments only: user code, allocations and device calls run outside. Threads pull
//! their work from here; nothing is pushed to a thread, so every queue is bounded by the permits of the pool.

use crate::{
    batch::BatchPlace,
    error::{BoxError, Error, Place, Stage},
    pool::{Permit, Pool, TICK},
    sample::{BatchPlan, guard},
    source::{Filled, Ready, Source, Task},
};
use crossbeam::utils::CachePadded;
use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// A task should take about this long: long against a lock, short against a batch.
const TASK_NS: u64 = 200_000;

/// Batches that may be on their way to the device beyond the `prefetch` that are ready: without them a transfer thread waits for
/// the consumer while the link is idle (on an H200 0.81, 0.86 and 0.88 of the link with 0, 1 and 2).
const ON_THE_WAY: usize = 2;
/// The fixed choices of a pipeline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flow {
    pub(crate) workers: usize,
    /// With none, as on a CPU backend, the worker that ends a batch does the pin and the transfer stage too: there is no copy to
    /// wait for, and permits alone bound what is ready.
    pub(crate) transfers: usize,
    /// Batches ready on the device ahead of the step.
    pub(crate) prefetch: usize,
    pub(crate) lease_timeout: Duration,
}

impl Flow {
    /// Batches that may be opened ahead of the consumer. Permits allow no more, except after errors, which hold none.
    fn window(&self, slots: usize) -> usize {
        self.prefetch + slots
    }

    /// Workers that go on while a filled batch waits for a transfer thread. The others rest: what they would write only pushes
    /// the slots that are being copied out of the cache, and the threads that copy off their cores (on an H200's host with 16
    /// cores 0.74 instead of 0.64 of the link with 15 workers; with 2, 4, 6 or all of 8 workers there is no difference).
    fn steady(&self) -> usize {
        (2 * self.workers).div_ceil(5)
    }
}

/// The indices of an epoch that are still to come.
pub(crate) struct Order {
    indices: Box<dyn Iterator<Item = usize> + Send>,
    /// The position of the first of all in the epoch's global order.
    first: usize,
    /// How many the sampler promised.
    promised: usize,
    batch_size: usize,
    /// How many were asked for.
    asked: usize,
    /// How many came.
    given: usize,
}

impl Order {
    pub(crate) fn new(
        indices: Box<dyn Iterator<Item = usize> + Send>,
        first: usize,
        promised: usize,
        batch_size: usize,
    ) -> Self {
        Self { indices, first, promised, batch_size, asked: 0, given: 0 }
    }

    /// The next batch's indices.
    fn take(&mut self, place: Place) -> Result<Vec<usize>, Error> {
        let rows = self.batch_size.min(self.promised - self.asked);
        self.asked += rows;
        let indices = guard(place, || Ok::<Vec<usize>, BoxError>(self.indices.by_ref().take(rows).collect()));
        if indices.is_err() {
            self.indices = Box::new(std::iter::empty()); // after a panic nobody knows where it stands
        }
        let indices = indices?;
        self.given += indices.len();
        if indices.len() < rows {
            return Err(Error::SamplerEnded { place, got: self.given, promised: self.promised });
        }
        Ok(indices)
    }
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
    /// Batches below this number are past the pin stage.
    pinned: usize,
    to_pin: BTreeMap<usize, Filled<O>>,
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
    /// Tasks that workers have in hand.
    running: usize,
    closed: bool,
}

/// Work for a worker.
pub(crate) enum Work<O> {
    /// Some rows of a batch.
    Task { run: RunId, number: usize, task: Box<dyn Task<O>> },
    /// A batch is to be opened: see [`Pipeline::open`].
    Open,
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
    state: Mutex<State<O>>,
    for_workers: Condvar,
    for_pin: Condvar,
    for_transfer: Condvar,
    for_consumers: Condvar,
    /// A running mean of what one row costs a worker.
    row_ns: CachePadded<AtomicU64>,
}

impl<O> State<O> {
    fn run(&mut self, id: RunId) -> Option<&mut Run<O>> {
        self.runs.iter_mut().find(|run| run.id == id)
    }

    /// Whether one more worker should rest for now.
    fn rests(&self, flow: &Flow) -> bool {
        self.running >= flow.steady() && self.runs.iter().any(|run| !run.to_send.is_empty())
    }

    fn has_work(&self, window: usize, flow: &Flow) -> bool {
        !self.rests(flow)
            && self.runs.iter().any(|run| !run.tasks.is_empty() || (!self.opening && run.can_open(window)))
    }

    /// Rows of an open batch before a new batch.
    fn take_work(&mut self, window: usize, flow: &Flow) -> Option<Work<O>> {
        if self.rests(flow) {
            return None;
        }
        for run in &mut self.runs {
            if let Some(task) = run.tasks.pop_front() {
                self.running += 1;
                return Some(Work::Task { run: run.id, number: run.tasks_of, task });
            }
        }
        if self.opening || !self.runs.iter().any(|run| run.can_open(window)) {
            return None;
        }
        self.opening = true;
        Some(Work::Open)
    }
}

impl<O> Run<O> {
    fn can_open(&self, window: usize) -> bool {
        self.order.is_some() && self.opened < self.batches.min(self.delivered + window)
    }

    /// The next batch for the pin stage, which goes in order: a batch that waits there for memory must not stand before the one
    /// that the consumer needs first. Batches that failed on the way are skipped.
    fn take_to_pin(&mut self) -> Option<(usize, Filled<O>)> {
        let mut next = self.pinned.max(self.delivered);
        while self.ready.contains_key(&next) {
            next += 1;
        }
        let filled = self.to_pin.remove(&next)?;
        self.pinned = next + 1;
        Some((next, filled))
    }

    /// No more than `prefetch` batches, and those on their way, are on the device ahead of the step.
    fn can_send(&self, flow: &Flow) -> bool {
        let allowed = self.delivered + flow.prefetch + ON_THE_WAY;
        self.to_send.first_key_value().is_some_and(|(number, _)| *number < allowed)
    }

    /// How long the consumer has waited for its next batch.
    fn starved(&self) -> Duration {
        self.waiting.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// The consumer's next batch is the next to open: nothing is on its way.
    fn next_to_open(&self) -> bool {
        self.opened == self.delivered
    }

    /// The consumer's next batch is the one in the pin stage.
    fn next_in_pin(&self) -> bool {
        self.pinned == self.delivered + 1
    }
}

impl<O> Pipeline<O> {
    pub(crate) fn new(source: Arc<dyn Source<O>>, pool: Arc<Pool>, flow: Flow) -> Self {
        Self {
            source,
            pool,
            flow,
            state: Mutex::new(State { runs: Vec::new(), next_id: 0, opening: false, running: 0, closed: false }),
            for_workers: Condvar::new(),
            for_pin: Condvar::new(),
            for_transfer: Condvar::new(),
            for_consumers: Condvar::new(),
            row_ns: CachePadded::default(),
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
            pinned: 0,
            to_pin: BTreeMap::new(),
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
                let opens = !state.opening && state.runs.iter().any(|run| run.can_open(self.window()));
                drop(state);
                self.for_transfer.notify_one();
                if opens {
                    self.for_workers.notify_one();
                }
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
        self.for_workers.notify_one(); // what made workers rest may have gone with it
    }

    // Workers.

    /// Waits for work; `None` when the pipeline is closed.
    pub(crate) fn work(&self) -> Option<Work<O>> {
        let mut state = self.lock();
        while !state.closed {
            if let Some(work) = state.take_work(self.window(), &self.flow) {
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
        let start = Instant::now();
        loop {
            let permit = self.pool.permit(TICK);
            let mut state = self.lock();
            let open = state.runs.iter_mut().filter(|run| run.can_open(self.window()));
            let run = match permit {
                Some(_) => open.min_by_key(|run| run.opened - run.delivered),
                None => open.max_by_key(|run| (run.next_to_open(), run.starved())),
            };
            let Some(run) = run.filter(|_| !self.pool.is_closed()) else {
                state.opening = false;
                return None;
            };
            let permit = match permit {
                Some(permit) => Ok(permit),
                None => match self.patient(run, run.next_to_open(), start.elapsed()) {
                    Ok(()) => continue,
                    Err(error) => Err(error),
                },
            };
            let Some(order) = run.order.take() else { continue }; // `can_open` saw that it is there
            let abandoned = Arc::clone(&run.abandoned);
            return Some(Opening { run: run.id, epoch: run.epoch, number: run.opened, order, abandoned, permit });
        }
    }

    /// Whether to wait longer for a permit or for memory: not if the consumer's next batch needs it, and consumer and wait are
    /// both past the limit.
    fn patient(&self, run: &Run<O>, needed: bool, waited: Duration) -> Result<(), Error> {
        let waited = waited.min(run.starved());
        if needed && waited > self.flow.lease_timeout {
            return Err(Error::LeaseTimeout { waited, slots: self.pool.limits().slots });
        }
        Ok(())
    }

    /// The same for an epoch that may be gone.
    fn wanted(&self, id: RunId, needed: fn(&Run<O>) -> bool, waited: Duration) -> Result<(), Error> {
        let mut state = self.lock();
        let run = state.run(id).ok_or(Error::Ended)?;
        self.patient(run, needed(run), waited)
    }

    fn window(&self) -> usize {
        self.flow.window(self.pool.limits().slots)
    }

    /// Takes the batch's indices and cuts it into tasks.
    fn cut(&self, opening: &mut Opening) -> Result<Vec<Box<dyn Task<O>>>, Error> {
        let Opening { epoch, number, order, .. } = opening;
        let place = Place { stage: Stage::Sampler, epoch: *epoch, batch: *number, worker: None, index: None };
        let at = BatchPlace { epoch: *epoch, number: *number, position: order.first + order.asked };
        let indices = order.take(place)?;
        let chunk = self.chunk(indices.len());
        let permit = std::mem::replace(&mut opening.permit, Err(Error::Ended))?;
        let abandoned = Arc::clone(&opening.abandoned);
        let plan = Arc::new(BatchPlan { at, indices, abandoned });
        let id = opening.run;
        Arc::clone(&self.source).open(
            plan,
            permit,
            &self.pool,
            &|waited| self.wanted(id, Run::next_to_open, waited),
            chunk,
        )
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

    /// Notes that a task has ended, and what it cost.
    pub(crate) fn ran(&self, rows: usize, time: Duration) {
        self.lock().running -= 1;
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
        let pins = self.source.needs_pin();
        if self.flow.transfers == 0 {
            let filled = if pins { self.pin(id, filled) } else { Ok(filled) };
            return self.ready(id, number, filled.and_then(|filled| self.source.send(filled, &self.pool)));
        }
        let mut state = self.lock();
        let left_over = match state.run(id) {
            Some(run) if pins => run.to_pin.insert(number, filled),
            Some(run) => run.to_send.insert(number, filled),
            None => Some(filled),
        };
        drop(state);
        drop(left_over);
        if pins { self.for_pin.notify_one() } else { self.for_transfer.notify_one() }
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
                if let Some((number, filled)) = run.take_to_pin() {
                    return Some((run.id, number, filled));
                }
            }
            state = self.for_pin.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Prepares a batch for the link.
    pub(crate) fn pin(&self, id: RunId, filled: Filled<O>) -> Result<Filled<O>, Error> {
        self.source.pin(filled, &self.pool, &|waited| self.wanted(id, Run::next_in_pin, waited))
    }

    /// Takes a prepared batch to the transfer stage.
    pub(crate) fn pinned(&self, id: RunId, number: usize, filled: Result<Filled<O>, Error>) {
        let filled = match filled {
            Err(error) | Ok(Filled::Failed(error)) => return self.ready(id, number, Err(error)),
            Ok(filled) => filled,
        };
        let mut state = self.lock();
        let left_over = match state.run(id) {
            Some(run) => run.to_send.insert(number, filled),
            None => Some(filled),
        };
        drop(state);
        drop(left_over);
        self.for_transfer.notify_one();
    }

    // Transfer threads.

    /// Waits for a batch that may go to the device; `None` when the pipeline is closed.
    pub(crate) fn to_send(&self) -> Option<(RunId, Place, Filled<O>)> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(run) = state.runs.iter_mut().find(|run| run.can_send(&self.flow))
                && let Some((batch, filled)) = run.to_send.pop_first()
            {
                let place = Place { stage: Stage::Transfer, epoch: run.epoch, batch, worker: None, index: None };
                let sendable = (run.id, place, filled);
                drop(state);
                self.for_workers.notify_one(); // one that rests may go on, and wakes the next
                return Some(sendable);
            }
            state = self.for_transfer.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
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
        self.for_pin.notify_one(); // a failure may have been what the next batch to pin stood behind
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
            // Consumers that still wait find their runs, with what is ready, without what was on its way.
            let take =
                |run: &mut Run<O>| (mem::take(&mut run.tasks), mem::take(&mut run.to_pin), mem::take(&mut run.to_send));
            state.runs.iter_mut().map(take).collect::<Vec<_>>()
        };
        for waiting in [&self.for_workers, &self.for_pin, &self.for_transfer, &self.for_consumers] {
            waiting.notify_all();
        }
        self.pool.close();
        drop(runs);
    }
}
