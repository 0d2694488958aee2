//! Opens batches: takes the batch's indices, gets its slot and cuts its tasks.

use super::{
    epochs::ELSEWHERE,
    run::{BatchId, Opening, Run, RunId},
    shared::Pipeline,
};
use crate::{
    batch::{BatchPlace, BatchPlan, Task},
    fault::{Error, discard, during},
    memory::{Patience, Permit},
    observe::Span,
    order::BatchIndices,
    vocabulary::Stage,
};
use std::{
    cell::Cell,
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

impl<O> Pipeline<O> {
    /// Opens a batch: takes its indices, gives it a slot and cuts it into tasks.
    pub(crate) fn open(&self, mut opening: Opening<O>, worker: usize) {
        let number = opening.batch.key.number;
        self.counters().took(Stage::SlotWait, opening.batch.key, opening.since, Instant::now());
        let permit = opening.permit.as_ref().ok().map(Permit::ticket);
        let tasks = self.cut(&mut opening);
        let crew = &self.crew;
        if let Err(error) = &tasks {
            let mut state = crew.lock();
            state.puts_down(worker);
            state.in_hand[worker] = Some(ELSEWHERE);
            drop(state);
            crew.for_resting.notify_all(); // it may hang while it reports the error
            self.source.faults().saw(error);
        }
        let Opening { batch, feed, .. } = opening;
        let mut state = crew.lock();
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
        state.count(&crew.flow, self.counters());
        drop(state);
        discard(batch.place(Stage::Read), left_over);
        for _ in 0..count.clamp(1, crew.flow.now.workers()) {
            crew.for_workers.notify_one();
        }
        if count == 0 {
            self.for_consumers.notify_all();
        }
    }

    /// Checks whether to wait longer for memory. Returns an error if both the consumer that needs it and this wait are
    /// past the limit.
    fn patient(&self, starved: Duration, waited: Duration) -> Result<(), Error> {
        let waited = waited.min(starved);
        if waited > self.flow.lease_timeout {
            return Err(Error::LeaseTimeout { waited, slots: self.pool.limits().slots });
        }
        Ok(())
    }

    /// The same for an epoch that may have ended. Other epochs may stand behind its wait, so their consumers
    /// count too.
    fn patient_for(&self, id: RunId, needed: fn(&Run<O>) -> bool, waited: Duration) -> Result<(), Error> {
        let mut state = self.crew.lock();
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
    fn cut(&self, opening: &mut Opening<O>) -> Result<Vec<Box<dyn Task<O>>>, Error> {
        let Opening { batch, feed, .. } = opening;
        let (batch, at) = (*batch, BatchPlace { key: batch.key, position: feed.position() });
        let sampling = Span::new(self.counters(), Stage::Sampler, batch.key);
        let BatchIndices { indices, occurrences } = feed.take(batch.place(Stage::Sampler))?;
        drop(sampling);
        let chunk = self.crew.chunk(indices.len(), self.source.is_uneven());
        let permit = mem::replace(&mut opening.permit, Err(Error::Ended))?;
        let abandoned = Arc::clone(&opening.abandoned);
        let plan = Arc::new(BatchPlan { at, indices: indices.into(), occurrences, abandoned });
        let open = |patience: Patience<'_>| Arc::clone(&self.source).open(plan, permit, &self.pool, patience, chunk);
        during(batch.place(Stage::SlotWait), || self.with_slot(batch, Run::next_to_open, open).0)
    }
}
