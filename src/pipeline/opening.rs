//! Opens batches: waits for a permit, chooses the epoch, takes the batch's indices, gets its slot and cuts its tasks.

use super::{
    epochs::ELSEWHERE,
    run::{BatchId, Run, RunId},
    shared::Pipeline,
};
use crate::{
    batch::{BatchPlace, BatchPlan, Task},
    fault::{Error, discard, during},
    memory::{Patience, Permit, TICK},
    observe::Span,
    order::{BatchIndices, Feed},
    vocabulary::Stage,
};
use std::{
    cell::Cell,
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// The time that a task should take, about. It is long compared with a lock and short compared with a batch.
const TASK_NS: u64 = 200_000;

/// A batch that is being opened. Its epoch has lent its feed for this.
struct Opening {
    batch: BatchId,
    feed: Feed,
    abandoned: Arc<AtomicBool>,
    /// The permit, or the error that says why there is none.
    permit: Result<Permit, Error>,
}

impl<O> Pipeline<O> {
    /// Opens the next batch of some epoch: waits for a permit, takes the batch's indices, gives it a slot and cuts it
    /// into tasks. Only one worker at a time does this. Meanwhile the other workers find only the work of open batches.
    pub(crate) fn open(&self, worker: usize) {
        let Some(mut opening) = self.choose() else { return };
        let permit = opening.permit.as_ref().ok().map(Permit::ticket);
        let tasks = self.cut(&mut opening);
        if let Err(error) = &tasks {
            let mut state = self.lock();
            state.opening = false;
            state.in_hand[worker] = Some(ELSEWHERE);
            drop(state);
            // Another worker may open batches while this one reports the error.
            self.for_workers.notify_one();
            self.for_resting.notify_all();
            self.source.faults().saw(error);
        }
        let Opening { batch, feed, .. } = opening;
        let number = batch.key.number;
        let mut state = self.lock();
        state.opening &= tasks.is_err(); // after an error, another worker may be opening by now
        let (mut count, mut left_over) = (0, None);
        match (state.run(batch.run), tasks) {
            (Some(run), tasks) => {
                run.opened += 1;
                run.feed = Some(feed);
                match tasks {
                    tasks if number < run.delivered => left_over = Some((None, tasks)), // given up meanwhile
                    Ok(tasks) => {
                        (count, run.tasks, run.tasks_of) = (tasks.len(), tasks.into(), number);
                        run.permits.extend(permit.map(|permit| (number, permit)));
                    }
                    Err(error) => drop(run.ready.insert(number, (Instant::now(), Err(error)))),
                }
            }
            (None, tasks) => left_over = Some((Some(feed), tasks)), // the consumer has gone meanwhile
        }
        drop(state);
        discard(batch.place(Stage::Read), left_over);
        for _ in 0..count.clamp(1, self.flow.now.workers()) {
            self.for_workers.notify_one();
        }
        if count == 0 {
            self.for_consumers.notify_all();
        }
    }

    /// Waits for a permit, then chooses the epoch that gets it: the one with the fewest batches on their way. If a
    /// consumer has waited too long and nothing is on its way, its epoch gets an error instead. Returns `None` when no
    /// epoch has a batch to open.
    fn choose(&self) -> Option<Opening> {
        let start = Instant::now();
        loop {
            let permit = self.pool.permit(TICK);
            let mut state = self.lock();
            let open = state.runs.iter_mut().filter(|run| run.can_open(self.most_open()));
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
                None => match self.patient(run.starved_if(run.next_to_open()), start.elapsed()) {
                    Ok(()) => continue,
                    Err(error) => Err(error),
                },
            };
            let Some(feed) = run.feed.take() else { continue }; // `can_open` has checked that it is there
            let abandoned = Arc::clone(&run.abandoned);
            let batch = run.batch(run.opened);
            drop(state);
            self.counters().took(Stage::SlotWait, batch.key, start, Instant::now());
            return Some(Opening { batch, feed, abandoned, permit });
        }
    }

    /// Checks whether to wait longer for a permit or for memory. Returns an error if both the consumer that needs it
    /// and this wait are past the limit.
    fn patient(&self, starved: Duration, waited: Duration) -> Result<(), Error> {
        let waited = waited.min(starved);
        if waited > self.flow.lease_timeout {
            return Err(Error::LeaseTimeout { waited, slots: self.pool.limits().slots });
        }
        Ok(())
    }

    /// The same for an epoch that may have ended. Other epochs stand behind its wait, so their consumers count too.
    fn patient_for(&self, id: RunId, needed: fn(&Run<O>) -> bool, waited: Duration) -> Result<(), Error> {
        let mut state = self.lock();
        let others = state.runs.iter().filter(|run| run.id != id).map(Run::starved).max().unwrap_or_default();
        let run = state.run(id).ok_or(Error::Ended)?;
        self.patient(run.starved_if(needed(run)).max(others), waited)
    }

    /// Does work that may have to wait for a slot's memory, and counts that wait separately. Also returns when the rest
    /// of the work began, as if the wait had come first.
    pub(super) fn with_slot<T>(
        &self,
        batch: BatchId,
        needed: fn(&Run<O>) -> bool,
        work: impl FnOnce(Patience<'_>) -> T,
    ) -> (T, Instant) {
        let (start, memory) = (Instant::now(), Cell::new(Duration::ZERO));
        let done = work(&|waited| {
            memory.set(waited);
            self.patient_for(batch.run, needed, waited)
        });
        let rest = start + memory.get();
        if rest > start {
            self.counters().took(Stage::SlotWait, batch.key, start, rest);
        }
        (done, rest)
    }

    /// Takes the batch's indices and cuts it into tasks.
    fn cut(&self, opening: &mut Opening) -> Result<Vec<Box<dyn Task<O>>>, Error> {
        let Opening { batch, feed, .. } = opening;
        let (batch, at) = (*batch, BatchPlace { key: batch.key, position: feed.position() });
        let sampling = Span::new(self.counters(), Stage::Sampler, batch.key);
        let BatchIndices { indices, occurrences } = feed.take(batch.place(Stage::Sampler))?;
        drop(sampling);
        let chunk = self.chunk(indices.len());
        let permit = mem::replace(&mut opening.permit, Err(Error::Ended))?;
        let abandoned = Arc::clone(&opening.abandoned);
        let plan = Arc::new(BatchPlan { at, indices: indices.into(), occurrences, abandoned });
        let open = |patience: Patience<'_>| Arc::clone(&self.source).open(plan, permit, &self.pool, patience, chunk);
        during(batch.place(Stage::SlotWait), || self.with_slot(batch, Run::next_to_open, open).0)
    }

    /// The number of rows per task: enough for [`TASK_NS`], by what rows have cost so far. At first each worker gets
    /// two shares of the batch, so that the first batch comes soon. This number changes the speed and nothing else.
    fn chunk(&self, rows: usize) -> usize {
        let by_time = match self.row_ns.load(Relaxed) {
            0 => rows.div_ceil(2 * self.flow.now.workers()),
            row_ns => usize::try_from(TASK_NS / row_ns).unwrap_or(usize::MAX),
        };
        by_time.clamp(1, rows.max(1))
    }
}
