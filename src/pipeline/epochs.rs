//! The epochs in progress, and the next work for a worker.

use super::{
    flow::Flow,
    run::{BatchId, Run, RunId},
};
use crate::{batch::Task, vocabulary::BatchKey};

/// All epochs in progress.
pub(crate) struct Epochs<O> {
    pub(crate) runs: Vec<Run<O>>,
    pub(crate) next_id: u64,
    /// Whether a worker is opening a batch. The other workers wait for its tasks.
    pub(crate) opening: bool,
    /// For each worker, the batch that it has in hand.
    pub(crate) in_hand: Vec<Option<BatchId>>,
    pub(crate) closed: bool,
}

/// Work for a worker.
pub(crate) enum Work<O> {
    /// Some rows of a batch.
    Task { batch: BatchId, task: Box<dyn Task<O>> },
    /// A batch must be opened, by `Pipeline::open`.
    Open,
}

/// What a worker has in hand while it does something that nobody waits for.
pub(crate) const ELSEWHERE: BatchId = BatchId { run: RunId(u64::MAX), key: BatchKey::NONE };

impl<O> Epochs<O> {
    pub(crate) fn new(workers: usize) -> Self {
        Self { runs: Vec::new(), next_id: 0, opening: false, in_hand: vec![None; workers], closed: false }
    }

    pub(crate) fn run(&mut self, id: RunId) -> Option<&mut Run<O>> {
        self.runs.iter_mut().find(|run| run.id == id)
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
        let at_work = self.in_hand.iter().flatten().filter(|batch| self.is_awaited(**batch)).count();
        let all = at_work < flow.steady();
        move |run| all || run.queues.to_send.is_empty()
    }

    pub(crate) fn has_work(&self, most_open: usize, flow: &Flow) -> bool {
        let may_work_for = self.may_work_for(flow);
        let works = |run: &Run<O>| !run.tasks.is_empty() || (!self.opening && run.can_open(most_open));
        self.runs.iter().any(|run| may_work_for(run) && works(run))
    }

    /// Takes the next work for a worker. Rows of an open batch come before a new batch.
    pub(crate) fn take_work(&mut self, worker: usize, most_open: usize, flow: &Flow) -> Option<Work<O>> {
        let may_work_for = self.may_work_for(flow);
        for run in self.runs.iter_mut().filter(|run| may_work_for(run)) {
            if let Some(task) = run.tasks.pop_front() {
                let batch = run.batch(run.tasks_of);
                self.in_hand[worker] = Some(batch);
                return Some(Work::Task { batch, task });
            }
        }
        if self.opening || !self.runs.iter().any(|run| may_work_for(run) && run.can_open(most_open)) {
            return None;
        }
        self.opening = true;
        Some(Work::Open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        batch::{Next, ToSend},
        device::Uploader,
        fault::Error,
        memory::Pool,
        order::{Distributed, Sampling, Schedule, SequentialSampler},
        pipeline::tune::Settings,
    };
    use std::{sync::Arc, time::Duration};

    fn batch(run: u64, number: usize) -> Option<BatchId> {
        Some(BatchId { run: RunId(run), key: BatchKey::new(0, number) })
    }

    /// An epoch of nine batches of one sample each.
    fn epoch(id: u64) -> Run<()> {
        let sampling = Sampling::Samples { sampler: Arc::new(SequentialSampler), batch_size: 1, drop_last: false };
        let schedule = Schedule {
            sampling,
            dataset_len: 9,
            distributed: Distributed::alone(),
            slice: None,
            devices: 1,
            resumed: None,
        };
        Run::new(RunId(id), 0, schedule.epoch(0).unwrap().feed, 0..9)
    }

    /// With `Auto` down to one worker, a call that hangs must not make all others rest.
    #[test]
    fn a_worker_that_hangs_in_a_batch_that_was_given_up_is_replaced() {
        let mut epochs = Epochs::<()>::new(5);
        let (id, gone) = (1, 0);
        epochs.runs.push(epoch(id));
        let at_work =
            |epochs: &Epochs<()>, of| (0..5).filter(|worker| epochs.is_at_work(*worker, of)).collect::<Vec<_>>();
        assert_eq!(at_work(&epochs, 1), [0], "nobody has anything in hand");
        epochs.in_hand = vec![batch(id, 2), batch(gone, 5), batch(id, 3), None, None];
        assert_eq!(at_work(&epochs, 1), [0]);
        assert_eq!(at_work(&epochs, 2), [0, 1, 2], "one of them is of no use");
        epochs.runs[0].delivered = 3; // what the first worker has in hand was given up
        assert_eq!(at_work(&epochs, 1), [0, 1, 2]);
        assert_eq!(at_work(&epochs, 3), [0, 1, 2, 3, 4]);
        epochs.in_hand[0] = Some(ELSEWHERE);
        assert_eq!(at_work(&epochs, 1), [0, 1, 2], "it tells of an error");
        epochs.in_hand[0] = None; // it returns after all
        assert_eq!(at_work(&epochs, 1), [0]);
        assert_eq!(at_work(&epochs, 3), [0, 1, 2, 3]);
    }

    struct Nothing;

    impl Task<()> for Nothing {
        fn rows(&self) -> usize {
            1
        }

        fn run(self: Box<Self>, _: usize) -> crate::batch::Done<()> {
            unreachable!("it is only looked at")
        }
    }

    impl ToSend<()> for Nothing {
        fn send(self: Box<Self>, _: &Arc<Pool>, _: &mut Uploader) -> Result<Next<()>, Error> {
            unreachable!("it is only counted")
        }
    }

    /// While workers rest for an epoch that has tasks left, its next batch is not opened.
    #[test]
    fn a_batch_with_tasks_left_is_not_followed_by_another() {
        let flow = flow();
        let mut epochs = Epochs::<()>::new(flow.workers);
        let (resting, here) = (0, 1);
        epochs.runs.extend([epoch(resting), epoch(here)]);
        epochs.in_hand[..flow.steady()].fill(batch(resting, 1));
        epochs.runs[0].queues.to_send.insert(0, Box::new(Nothing));
        epochs.runs[0].tasks.push_back(Box::new(Nothing));
        assert!(matches!(epochs.take_work(9, 4, &flow), Some(Work::Open)), "of the other epoch");
        assert_eq!([0, 1].map(|at| epochs.runs[at].can_open(4)), [false, true]);
        epochs.runs[0].tasks.clear();
        assert!(epochs.runs[0].can_open(4));
    }

    fn flow() -> Flow {
        Flow {
            workers: 10,
            transfers: 1,
            prefetch: 2,
            now: Settings::new(10, 2),
            lease_timeout: Duration::MAX,
            timeout: None,
        }
    }

    /// Workers rest while the link is behind. Batches that a consumer does not take do not hold up another epoch.
    #[test]
    fn an_epoch_whose_consumer_is_away_makes_nobody_rest() {
        let flow = flow();
        let mut epochs = Epochs::<()>::new(flow.workers);
        let (away, here) = (0, 1);
        epochs.runs.extend([epoch(away), epoch(here)]);
        epochs.in_hand[..flow.steady()].fill(batch(here, 5));
        let may_work = |epochs: &Epochs<()>| [0, 1].map(|at| epochs.may_work_for(&flow)(&epochs.runs[at]));
        assert_eq!(may_work(&epochs), [true, true]);
        epochs.runs[0].queues.to_send.insert(flow.ahead(), Box::new(Nothing));
        assert_eq!(may_work(&epochs), [false, true]);
        epochs.runs[1].queues.to_send.insert(0, Box::new(Nothing));
        assert_eq!(may_work(&epochs), [false, false]);
        epochs.in_hand[0] = None;
        assert_eq!(may_work(&epochs), [true, true]);
        epochs.in_hand.fill(batch(here, 5));
        epochs.runs.iter_mut().for_each(|run| run.queues.to_send.clear());
        assert_eq!(may_work(&epochs), [true, true]);
    }
}
