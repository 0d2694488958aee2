//! What the threads of one copy of a loader share: its slots, its batches at every stage, and who waits for what.
//!
//! The lock over the epochs is the crew's. Threads take their work from there, and nothing is pushed to a thread. So the
//! permits of the pool limit every queue.

use super::{
    branch::Branch,
    crew::Crew,
    run::{BatchId, Run},
};
use crate::{
    batch::{Outcome, Ready, Source, Step},
    fault::{Caught, Error, HungCall, Skips, discard},
    memory::{AwaitsPermits, Pool},
    observe::Counters,
    vocabulary::{BatchKey, Place, Stage},
};
use std::{
    collections::VecDeque,
    mem,
    ops::Deref,
    sync::{Arc, Weak},
    time::Instant,
};

/// One copy of a loader, with the workers that all copies share. What is the copy's own is in its branch.
pub(crate) struct Pipeline<O> {
    pub(crate) crew: Arc<Crew<O>>,
    branch: Arc<Branch<O>>,
}

impl<O> Deref for Pipeline<O> {
    type Target = Branch<O>;

    fn deref(&self) -> &Branch<O> {
        &self.branch
    }
}

impl<O: Send + 'static> Pipeline<O> {
    /// Makes a copy that `transfers` threads serve.
    pub(crate) fn new(
        crew: Arc<Crew<O>>,
        source: Arc<dyn Source<O>>,
        pool: Arc<Pool>,
        transfers: usize,
        device: Option<u16>,
    ) -> Self {
        let workers = Arc::downgrade(&crew) as Weak<dyn AwaitsPermits>;
        Self { branch: Arc::new(Branch::new(&crew.flow, workers, source, pool, transfers, device)), crew }
    }
}

impl<O> Pipeline<O> {
    /// The copy of a branch.
    pub(super) fn of(crew: &Arc<Crew<O>>, branch: Arc<Branch<O>>) -> Self {
        Self { crew: Arc::clone(crew), branch }
    }

    pub(super) fn branch(&self) -> &Arc<Branch<O>> {
        &self.branch
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.pool.counters()
    }

    // Workers.

    /// Notes bad samples of a batch, in addition to those that were noted before.
    pub(crate) fn skipped(&self, batch: BatchId, skips: Skips) {
        if skips.is_empty() {
            return;
        }
        self.put(batch, skips, |run, skips| run.skips.entry(batch.key.number).or_default().merge(skips));
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
        let mut state = self.crew.lock();
        let Some(run) = state.run(batch.run) else { return };
        let rest = if run.tasks_of == batch.key.number { mem::take(&mut run.tasks) } else { VecDeque::new() };
        drop(state);
        discard(batch.place(Stage::Finish), rest);
        let place = Place { worker: Some(worker), ..batch.place(Stage::Collate) };
        self.ready(batch, Err(Error::Panicked { place, message, trace }));
    }

    // All threads.

    /// Waits until `take` finds something in one of this copy's epochs; returns `None` when the pipeline is closed.
    pub(super) fn wait_for<T>(&self, step: Step, take: impl FnMut(&mut Run<O>) -> Option<T> + Copy) -> Option<T> {
        let mut state = self.crew.lock();
        while !self.is_closed() {
            if let Some(found) = state.runs_of_mut(&self.branch).find_map(take) {
                return Some(found);
            }
            self.for_step(step).wait(&mut state);
        }
        None
    }

    /// Puts a part of a batch into its epoch; returns whether it was put there. If the epoch has ended or the batch was
    /// given up, the part is dropped outside the lock.
    pub(super) fn put<T>(&self, batch: BatchId, part: T, put: impl FnOnce(&mut Run<O>, T) -> Option<T>) -> bool {
        let mut state = self.crew.lock();
        let left_over = match state.run(batch.run) {
            Some(run) if batch.key.number >= run.delivered => put(run, part),
            _ => Some(part),
        };
        drop(state);
        let taken = left_over.is_none();
        discard(batch.place(Stage::Finish), left_over);
        taken
    }

    /// The number of this copy's epochs in progress.
    pub(crate) fn epochs(&self) -> usize {
        self.crew.lock().runs_of(&self.branch).count()
    }

    /// Puts a batch, or its error, at its place for the consumer; returns whether there is one.
    pub(crate) fn ready(&self, batch: BatchId, ready: Result<Ready<O>, Error>) -> bool {
        self.deliver(batch, ready.inspect_err(|error| self.source.faults().saw(error)))
    }

    /// The same for an error that was reported already.
    fn deliver(&self, batch: BatchId, ready: Result<Ready<O>, Error>) -> bool {
        let passed_all = matches!(ready, Ok(Ready::Raw(_) | Ready::Finished(_)));
        let (number, mut starts) = (batch.key.number, false);
        let taken = self.put(batch, (Instant::now(), ready), |run, ready| {
            starts = run.is_first(number);
            run.ready.insert(number, ready)
        });
        if starts {
            self.crew.lock().count(&self.flow, self.counters()); // until now, all worked
        }
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
        let hangs = || self.watch.hangs() || self.crew.watch.hangs();
        let hung = || self.watch.is_hung() || self.crew.watch.is_hung() || (!self.pool.has_permit() && hangs());
        self.is_closed() || self.crew.is_closed() || (self.epochs() == 0 && hung())
    }

    /// Returns the call to blame for a batch that does not come.
    pub(super) fn blame(&self, batch: BatchKey) -> Option<HungCall> {
        let calls = [&self.watch, &self.crew.watch].into_iter().filter_map(|watch| watch.blame(batch));
        calls.max_by_key(|hung| (hung.place.key() == batch, hung.since))
    }

    /// Ends every wait of this copy's threads and consumers.
    pub(crate) fn close(&self) {
        self.crew.close_branch(&self.branch);
    }
}

#[cfg(all(test, burn_pinned_loom))]
mod model;
