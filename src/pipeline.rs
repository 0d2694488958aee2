//! What the threads of a loader share: the epochs that run, their batches at every stage, and who waits for what.
//!
//! One lock guards all of it and is held for moments only: user code, allocations and device calls run outside. Threads pull
//! their work from here; nothing is pushed to a thread, so every queue is bounded by the permits of the pool.

use crate::{
    activity::{Activity, BatchKey},
    batch::BatchPlace,
    epoch::{Delivery, Epochs, Flow, Run, RunId, Work},
    error::{Error, Place, Stage},
    order::{Cut, Order},
    policy::Bad,
    pool::{Permit, Pool, TICK},
    sample::BatchPlan,
    source::{Filled, Ready, Source, Task},
    stats::Counters,
    sync::{Condvar, Mutex, MutexGuard},
    upload::Uploader,
    watch::{Watch, during},
    window::DeviceWindow,
};
use crossbeam::utils::CachePadded;
use std::{
    collections::VecDeque,
    mem,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// A task should take about this long: long against a lock, short against a batch.
const TASK_NS: u64 = 200_000;

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
    pub(crate) device: DeviceWindow,
    pub(crate) watch: Arc<Watch>,
    state: Mutex<Epochs<O>>,
    for_workers: Condvar,
    for_pin: Condvar,
    for_transfer: Condvar,
    for_consumers: Condvar,
    /// A running mean of what one row costs a worker.
    row_ns: CachePadded<AtomicU64>,
}

impl<O> Pipeline<O> {
    pub(crate) fn new(source: Arc<dyn Source<O>>, pool: Arc<Pool>, flow: Flow) -> Self {
        Self {
            source,
            pool,
            device: DeviceWindow::new(flow.ahead() + 1), // and the one that the step works on
            watch: Arc::new(Watch::new(flow.timeout)),
            flow,
            state: Mutex::new(Epochs::new()),
            for_workers: Condvar::new(),
            for_pin: Condvar::new(),
            for_transfer: Condvar::new(),
            for_consumers: Condvar::new(),
            row_ns: CachePadded::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Epochs<O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.pool.counters()
    }

    // The consumer.

    /// Starts an epoch of `batches` batches.
    pub(crate) fn start(&self, epoch: usize, order: Order, batches: usize) -> RunId {
        let mut state = self.lock();
        let id = RunId(state.next_id);
        state.next_id += 1;
        state.runs.push(Run::new(id, epoch, order, batches));
        drop(state);
        self.for_workers.notify_one();
        id
    }

    /// The next batch of an epoch in order, or its error; waits for it. `None` at the epoch's end.
    pub(crate) fn next(&self, id: RunId) -> Option<Delivery<O>> {
        let mut state = self.lock();
        if let Some(run) = state.run(id) {
            self.counters().asked(run.queues());
        }
        loop {
            let closed = state.closed;
            let run = state.run(id)?;
            if run.delivered == run.batches {
                return None;
            }
            if let Some((since, ready)) = run.ready.remove(&run.delivered) {
                let batch = BatchKey { epoch: run.epoch, number: run.delivered };
                let place = Place::batch(Stage::Dataset, run.epoch, run.delivered);
                let bad = run.bad.remove(&run.delivered).unwrap_or_default();
                run.delivered += 1;
                run.waiting = None;
                let opens = !state.opening && state.runs.iter().any(|run| run.can_open(self.window()));
                drop(state);
                self.for_transfer.notify_one();
                if opens {
                    self.for_workers.notify_one();
                }
                self.counters().took(Activity::Ready, batch, since, Instant::now());
                return Some(Delivery { place, ready, bad });
            }
            if closed {
                let place = Place::batch(Stage::Dataset, run.epoch, run.delivered);
                run.delivered = run.batches;
                return Some(Delivery { place, ready: Err(Error::Ended), bad: Bad::default() });
            }
            let waited = run.waiting.get_or_insert_with(Instant::now).elapsed();
            state = match self.flow.timeout {
                None => self.for_consumers.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(timeout) if waited >= timeout => return self.give_up(state, id, waited),
                Some(timeout) => {
                    let waiting = self.for_consumers.wait_timeout(state, timeout - waited);
                    waiting.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Gives up the next batch of an epoch: what there is of it is dropped, and what still comes of it will be.
    fn give_up(&self, mut state: MutexGuard<'_, Epochs<O>>, id: RunId, waited: Duration) -> Option<Delivery<O>> {
        let run = state.run(id)?;
        let (epoch, batch) = (run.epoch, run.delivered);
        run.delivered += 1;
        run.waiting = None;
        let tasks = if run.tasks_of == batch { mem::take(&mut run.tasks) } else { VecDeque::new() };
        let left_over = (tasks, run.to_pin.remove(&batch), run.to_send.remove(&batch), run.bad.remove(&batch));
        drop(state);
        let stuck = self.watch.blame(epoch, batch).map(Box::new);
        drop(left_over);
        for waiting in [&self.for_workers, &self.for_pin, &self.for_transfer] {
            waiting.notify_all();
        }
        let error = Error::Timeout { epoch, batch, waited, stuck };
        self.source.faults().saw(&error);
        let place = Place::batch(Stage::Dataset, epoch, batch);
        Some(Delivery { place, ready: Err(error), bad: Bad::default() })
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
        let tasks = self.cut(&mut opening).inspect_err(|error| self.source.faults().saw(error));
        let Opening { run: id, number, order, .. } = opening;
        let mut state = self.lock();
        state.opening = false;
        let (mut count, mut left_over) = (0, None);
        match (state.run(id), tasks) {
            (Some(run), tasks) => {
                run.opened += 1;
                run.order = Some(order);
                match tasks {
                    tasks if number < run.delivered => left_over = Some((None, tasks)), // given up meanwhile
                    Ok(tasks) => (count, run.tasks, run.tasks_of) = (tasks.len(), tasks.into(), number),
                    Err(error) => drop(run.ready.insert(number, (Instant::now(), Err(error)))),
                }
            }
            (None, tasks) => left_over = Some((Some(order), tasks)), // the consumer has gone meanwhile
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
                Some(_) => open.min_by_key(|run| run.opened.saturating_sub(run.delivered)),
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
            let opening = Opening { run: run.id, epoch: run.epoch, number: run.opened, order, abandoned, permit };
            drop(state);
            let batch = BatchKey { epoch: opening.epoch, number: opening.number };
            self.counters().took(Activity::SlotWait, batch, start, Instant::now());
            return Some(opening);
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
        let place = Place::batch(Stage::Sampler, *epoch, *number);
        let at = BatchPlace { epoch: *epoch, number: *number, position: order.position() };
        let Cut { indices, occurrences } = order.take(place)?;
        let chunk = self.chunk(indices.len());
        let permit = mem::replace(&mut opening.permit, Err(Error::Ended))?;
        let abandoned = Arc::clone(&opening.abandoned);
        let plan = Arc::new(BatchPlan { at, indices, occurrences, abandoned });
        let id = opening.run;
        let place = Place { stage: Stage::Allocate, ..place };
        let wanted = |waited| self.wanted(id, Run::next_to_open, waited);
        during(place, || Arc::clone(&self.source).open(plan, permit, &self.pool, &wanted, chunk))
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

    /// Takes a filled batch to its next stage, with what is bad of it.
    pub(crate) fn filled(&self, id: RunId, number: usize, filled: Filled<O>, bad: Bad) {
        if !bad.is_empty() {
            self.hand(id, number, bad, |run, bad| run.bad.insert(number, bad));
        }
        let filled = match filled {
            Filled::Failed(error) => return self.put(id, number, Err(error)), // was seen where it was met
            Filled::Empty => return self.put(id, number, Ok(Ready::Empty)),
            filled => filled,
        };
        let pins = self.source.needs_pin();
        if self.flow.transfers == 0 {
            let filled = if pins { self.pin(id, filled) } else { Ok(filled) };
            return self.ready(
                id,
                number,
                filled.and_then(|filled| self.source.send(filled, &self.pool, &mut Uploader::Burn)),
            );
        }
        if pins {
            self.hand(id, number, filled, |run, filled| run.to_pin.insert(number, filled));
            self.for_pin.notify_one();
        } else {
            self.prepared(id, number, filled);
        }
    }

    /// Puts something of a batch into its epoch; drops it, outside the lock, if the epoch is gone or the batch was given up.
    fn hand<T>(&self, id: RunId, number: usize, value: T, put: impl FnOnce(&mut Run<O>, T) -> Option<T>) {
        let mut state = self.lock();
        let left_over = match state.run(id) {
            Some(run) if number >= run.delivered => put(run, value),
            _ => Some(value),
        };
        drop(state);
        drop(left_over);
    }

    /// Takes a batch that is ready for the link to the transfer stage.
    fn prepared(&self, id: RunId, number: usize, filled: Filled<O>) {
        self.hand(id, number, filled, |run, filled| run.to_send.insert(number, filled));
        self.for_transfer.notify_one();
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
        let _span = filled.at().map(|at| self.counters().span(Activity::Pin, at.key()));
        self.source.pin(filled, &self.pool, &|waited| self.wanted(id, Run::next_in_pin, waited))
    }

    /// Takes a prepared batch to the transfer stage.
    pub(crate) fn pinned(&self, id: RunId, number: usize, filled: Result<Filled<O>, Error>) {
        match filled {
            Err(error) | Ok(Filled::Failed(error)) => self.ready(id, number, Err(error)),
            Ok(filled) => self.prepared(id, number, filled),
        }
    }

    // Transfer threads.

    /// How long a consumer has waited for its next batch; `None` when the pipeline is closed.
    pub(crate) fn starved(&self) -> Option<Duration> {
        let state = self.lock();
        (!state.closed).then(|| state.runs.iter().map(Run::starved).max().unwrap_or_default())
    }

    /// Epochs in progress.
    pub(crate) fn epochs(&self) -> usize {
        self.lock().runs.len()
    }

    /// Waits for a batch that may go to the device; `None` when the pipeline is closed.
    pub(crate) fn to_send(&self) -> Option<(RunId, Place, Filled<O>)> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(run) = state.runs.iter_mut().find(|run| run.can_send(self.flow.ahead()))
                && let Some((batch, filled)) = run.to_send.pop_first()
            {
                let place = Place::batch(Stage::Transfer, run.epoch, batch);
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
        self.put(id, number, ready.inspect_err(|error| self.source.faults().saw(error)));
    }

    fn put(&self, id: RunId, number: usize, ready: Result<Ready<O>, Error>) {
        let filled = matches!(ready, Ok(Ready::Raw(_) | Ready::Done { .. }));
        self.hand(id, number, (Instant::now(), ready), |run, ready| run.ready.insert(number, ready));
        self.for_consumers.notify_all();
        if !filled {
            self.for_pin.notify_one(); // the next batch to pin may have stood behind this one
        }
    }

    // The end.

    /// Whether no batch will come any more: a thread died, or all workers hang and nobody waits for them.
    pub(crate) fn is_dead(&self) -> bool {
        self.pool.is_closed() || (self.epochs() == 0 && self.watch.all_stuck("bp-worker"))
    }

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

#[cfg(all(test, burn_pinned_loom))]
mod model;
