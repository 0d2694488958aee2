//! The epochs in progress, and the next work for a worker.

use super::{
    branch::Branch,
    flow::Flow,
    run::{BatchId, Opening, Run, RunId},
};
use crate::{
    batch::{Ready, Task},
    fault::Error,
    memory::Permit,
    observe::Counters,
    vocabulary::BatchKey,
};
use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// The epochs in progress of a loader and all its copies.
pub(crate) struct Epochs<O> {
    pub(crate) runs: Vec<Run<O>>,
    pub(crate) next_id: u64,
    /// For each worker, the batch that it has in hand.
    pub(crate) in_hand: Vec<Option<BatchId>>,
    /// The number of workers that sleep because they are not needed.
    pub(super) resting: usize,
    /// The number of workers at work that the statistics know; 0 before the first epoch.
    counted: usize,
    pub(crate) closed: bool,
}

/// Work for a worker.
pub(crate) enum Work<O> {
    /// Some rows of a batch.
    Task { of: Arc<Branch<O>>, batch: BatchId, task: Box<dyn Task<O>> },
    /// A batch must be opened, by `Pipeline::open`.
    Open(Opening<O>),
}

/// What a worker has in hand while it does something that nobody waits for.
pub(crate) const ELSEWHERE: BatchId = BatchId { run: RunId(u64::MAX), key: BatchKey::NONE };

impl<O> Epochs<O> {
    pub(crate) fn new(workers: usize) -> Self {
        Self { runs: Vec::new(), next_id: 0, in_hand: vec![None; workers], resting: 0, counted: 0, closed: false }
    }

    pub(crate) fn run(&mut self, id: RunId) -> Option<&mut Run<O>> {
        self.runs.iter_mut().find(|run| run.id == id)
    }

    /// The epochs of one copy of the loader.
    pub(crate) fn runs_of<'a>(&'a self, branch: &'a Branch<O>) -> impl Iterator<Item = &'a Run<O>> {
        self.runs.iter().filter(|run| std::ptr::eq(&*run.of, branch))
    }

    pub(crate) fn runs_of_mut<'a>(&'a mut self, branch: &'a Branch<O>) -> impl Iterator<Item = &'a mut Run<O>> {
        self.runs.iter_mut().filter(|run| std::ptr::eq(&*run.of, branch))
    }

    /// Takes the permits of what is ready for the consumers of a copy. Only on a CPU backend do such batches have permits.
    /// They count as delivered then. The permits are to be dropped outside the lock.
    pub(super) fn take_permits(&mut self, branch: &Branch<O>) -> Vec<Permit> {
        let ready = self.runs_of_mut(branch).flat_map(|run| run.ready.values_mut());
        let permit = |(_, ready): &mut (Instant, Result<Ready<O>, Error>)| match ready {
            Ok(Ready::Finished(finished)) => finished.permit.take(),
            _ => None,
        };
        ready.filter_map(permit).collect()
    }

    /// The number of workers that are to work now: as many as were chosen, or all if an epoch needs them.
    pub(super) fn at_work(&self, flow: &Flow) -> usize {
        if self.runs.iter().any(Run::needs_all) { flow.workers } else { flow.now.workers() }
    }

    /// Tells the statistics how many workers are to work now.
    pub(super) fn count(&mut self, flow: &Flow, counters: &Counters) {
        let workers = self.at_work(flow);
        if mem::replace(&mut self.counted, workers) != workers {
            counters.set_workers(workers);
        }
    }

    /// Whether no epoch starts, which more workers than were chosen work for.
    pub(super) fn is_as_chosen(&self, flow: &Flow) -> bool {
        flow.now.workers() == flow.workers || !self.runs.iter().any(Run::starts)
    }

    /// Makes all workers work for the next batch of an epoch, if they have it and some of them rest. Returns whether that
    /// is so.
    pub(super) fn call_all(&mut self, id: RunId, flow: &Flow) -> bool {
        let rests = self.resting > 0 && self.at_work(flow) < flow.workers; // those that wake have been called already
        let Some(run) = self.runs.iter_mut().find(|run| run.id == id) else { return false };
        let calls = rests && run.is_with_workers(&self.in_hand);
        run.calls_all |= calls;
        calls
    }

    /// Notes that a worker has nothing in hand.
    pub(crate) fn puts_down(&mut self, worker: usize) {
        if let Some(batch) = self.in_hand[worker].take()
            && let Some(run) = self.run(batch.run)
        {
            run.hands -= 1;
        }
    }

    /// Notes that nobody waits any more for a batch that workers may have in hand.
    pub(crate) fn lets_go(&mut self, batch: BatchId) {
        let hands = self.in_hand.iter_mut().flatten().filter(|hand| **hand == batch);
        let gone = hands.map(|hand| *hand = ELSEWHERE).count();
        if let Some(run) = self.run(batch.run) {
            run.hands -= gone;
        }
    }

    /// Whether somebody waits for a batch. Nobody does if it was given up, or if its epoch has ended.
    pub(crate) fn is_awaited(&self, batch: BatchId) -> bool {
        self.runs.iter().any(|run| run.id == batch.run && batch.key.number >= run.delivered)
    }

    /// Whether a worker is one of the first `count`. A worker does not count if nobody waits for what it has in hand,
    /// because it may hang there. The same workers are always at work, so that the others sleep undisturbed.
    pub(crate) fn is_at_work(&self, worker: usize, count: usize) -> bool {
        let before = self.in_hand.iter().take(worker);
        // The second condition alone would do; the first is a quick check.
        worker < count || before.filter(|batch| batch.is_none_or(|batch| self.is_awaited(batch))).count() < count
    }

    /// Tells which epochs one more worker may work for: all of them, or only those of which nothing waits to be sent.
    /// An epoch whose consumer is away must not make a worker rest that could work for another epoch.
    fn may_work_for(&self, flow: &Flow) -> impl Fn(&Run<O>) -> bool + use<O> {
        let all = self.runs.iter().map(|run| run.hands).sum::<usize>() < flow.steady();
        move |run| all || run.queues.to_send.is_empty()
    }

    pub(crate) fn has_work(&self, flow: &Flow) -> bool {
        let may_work_for = self.may_work_for(flow);
        self.runs.iter().any(|run| may_work_for(run) && run.has_work())
    }

    /// Takes the most urgent work for a worker that has asked for it at `asked`, and that runs on a NUMA node.
    pub(crate) fn take_work(
        &mut self,
        worker: usize,
        node: Option<u32>,
        flow: &Flow,
        asked: Instant,
    ) -> Option<Work<O>> {
        let may_work_for = self.may_work_for(flow);
        let runs = self.runs.iter_mut().filter(|run| may_work_for(run) && run.has_work());
        let run = runs.min_by_key(|run| run.urgency(node))?;
        let (batch, work) = match run.tasks.pop_front() {
            Some(task) => {
                let batch = run.batch(run.tasks_of);
                (batch, Work::Task { of: Arc::clone(&run.of), batch, task })
            }
            None => {
                let opening = run.open(asked)?;
                (opening.batch, Work::Open(opening))
            }
        };
        run.hands += 1;
        self.in_hand[worker] = Some(batch);
        Some(work)
    }

    /// Whether it matters on which NUMA node a worker runs: whether slots lie on several.
    pub(crate) fn has_nodes(&self) -> bool {
        let mut nodes = self.runs.iter().filter_map(|run| run.of.node);
        nodes.next().is_some_and(|first| nodes.any(|other| other != first))
    }

    /// Notes which epochs lack a permit. Returns how long workers may sleep at most, before a consumer has to be told.
    pub(crate) fn patience(&mut self) -> Option<Duration> {
        self.runs.iter_mut().filter_map(Run::lack).min()
    }
}

#[cfg(test)]
mod tests;
