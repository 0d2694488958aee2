//! The epochs in progress: the order that is still to come, the batches at every stage, and the next work for a worker.

use crate::{
    batch::{Filled, Ready, Task},
    fault::{Bad, Error},
    memory::Ticket,
    order::Order,
    pipeline::tune::Settings,
    vocabulary::Place,
};
use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

/// The number of batches that may be on their way to the device, beyond the `prefetch` batches that are ready. Without
/// them a transfer thread waits for the consumer while the link is idle. On an H200, 0, 1 and 2 of them use 0.81, 0.86
/// and 0.88 of the link.
const ON_THE_WAY: usize = 2;

/// The fixed choices of a pipeline.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) workers: usize,
    /// The number of transfer threads. With none, as on a CPU backend, the worker that ends a batch also does its pin
    /// and transfer stages. There is no copy to wait for then, and permits alone limit what is ready.
    pub(crate) transfers: usize,
    /// The number of batches ready on the device ahead of the step, at the start.
    pub(crate) prefetch: usize,
    /// The settings that may change: the numbers of workers at work and of batches ready on the device ahead of the
    /// step.
    pub(crate) now: Arc<Settings>,
    pub(crate) lease_timeout: Duration,
    /// How long `next()` waits for a batch.
    pub(crate) timeout: Option<Duration>,
}

impl Flow {
    /// The number of batches that may be opened ahead of the consumer. Permits allow no more, except after errors: an
    /// error holds no permit.
    pub(crate) fn window(&self, slots: usize) -> usize {
        self.now.prefetch() + slots
    }

    /// The most batches ahead of the step that may be on the device or on their way there.
    pub(crate) fn ahead(&self) -> usize {
        self.now.prefetch() + ON_THE_WAY
    }

    /// The number of workers that go on while a filled batch waits for a transfer thread. The others rest. Their writes
    /// would push the slots of current copies out of the cache, and would take cores from the threads that copy. On an
    /// H200's host with 16 cores and 15 workers this reaches 0.74 of the link instead of 0.64. With 2, 4, 6 or all of 8
    /// workers there is no difference.
    fn steady(&self) -> usize {
        (2 * self.now.workers()).div_ceil(5)
    }
}

/// All epochs in progress.
pub(crate) struct Epochs<O> {
    pub(crate) runs: Vec<Run<O>>,
    pub(crate) next_id: u64,
    /// Whether a worker is opening a batch. The other workers wait for its tasks.
    pub(crate) opening: bool,
    /// For each worker, the batch that it has in hand.
    pub(crate) in_hand: Vec<Option<(RunId, usize)>>,
    pub(crate) closed: bool,
}

/// Work for a worker.
pub(crate) enum Work<O> {
    /// Some rows of a batch.
    Task { run: RunId, number: usize, task: Box<dyn Task<O>> },
    /// A batch must be opened, by `Pipeline::open`.
    Open,
}

/// Which epoch of this pipeline a batch belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunId {
    pub(crate) number: u64,
    /// The loader's epoch. Iterators of several copies of a loader may be in the same one.
    pub(crate) epoch: usize,
}

/// What a worker has in hand while it does something that nobody waits for.
pub(crate) const ELSEWHERE: (RunId, usize) = (RunId { number: u64::MAX, epoch: 0 }, 0);

/// What the consumer gets at the place of a batch.
pub(crate) struct Delivery<O> {
    pub(crate) place: Place,
    pub(crate) ready: Result<Ready<O>, Error>,
    pub(crate) bad: Bad,
}

/// One epoch in progress.
pub(crate) struct Run<O> {
    pub(crate) id: RunId,
    /// `None` while a worker opens a batch, and when no batch is left to open.
    pub(crate) order: Option<Order>,
    /// The number after that of the last batch. In an epoch that was resumed, the number of the first batch is not 0.
    pub(crate) end: usize,
    /// The number of the next batch to open; `delivered` is that of the next batch to deliver.
    pub(crate) opened: usize,
    pub(crate) delivered: usize,
    pub(crate) tasks: VecDeque<Box<dyn Task<O>>>,
    /// The number of the batch that `tasks` belong to.
    pub(crate) tasks_of: usize,
    /// The permits of the batches that are open.
    pub(crate) permits: BTreeMap<usize, Ticket>,
    /// Batches below this number are past the pin stage.
    pub(crate) pinned: usize,
    pub(crate) to_pin: BTreeMap<usize, Box<dyn Filled<O>>>,
    pub(crate) to_send: BTreeMap<usize, Box<dyn Filled<O>>>,
    /// Batches and errors for the consumer, each with the time at which it was put here.
    pub(crate) ready: BTreeMap<usize, (Instant, Result<Ready<O>, Error>)>,
    /// What was skipped or replaced in batches that are not delivered yet.
    pub(crate) bad: BTreeMap<usize, Bad>,
    /// The time at which the consumer began to wait for the next batch.
    pub(crate) waiting: Option<Instant>,
    pub(crate) abandoned: Arc<AtomicBool>,
}

impl<O> Run<O> {
    /// An epoch of the batches with these numbers, none of them opened yet.
    pub(crate) fn new(id: RunId, order: Order, batches: Range<usize>) -> Self {
        let Range { start: first, end } = batches;
        Self {
            id,
            order: Some(order).filter(|_| first < end),
            end,
            opened: first,
            delivered: first,
            tasks: VecDeque::new(),
            tasks_of: first,
            permits: BTreeMap::new(),
            pinned: first,
            to_pin: BTreeMap::new(),
            to_send: BTreeMap::new(),
            ready: BTreeMap::new(),
            bad: BTreeMap::new(),
            waiting: None,
            abandoned: Arc::default(),
        }
    }

    /// Whether the next batch may be opened. It may not before workers have taken all tasks of the batch before.
    pub(crate) fn can_open(&self, window: usize) -> bool {
        self.tasks.is_empty() && self.order.is_some() && self.opened < self.end.min(self.delivered + window)
    }

    /// Takes the next batch for the pin stage. That stage goes in order, because a batch that waits there for memory
    /// must not hold up the one that the consumer needs first. Batches that failed on the way are skipped.
    pub(crate) fn take_to_pin(&mut self) -> Option<(usize, Box<dyn Filled<O>>)> {
        let mut next = self.pinned.max(self.delivered);
        while self.ready.contains_key(&next) {
            next += 1;
        }
        let filled = self.to_pin.remove(&next)?;
        self.pinned = next + 1;
        Some((next, filled))
    }

    /// Whether a batch may be sent. At most `ahead` batches ahead of the step are on the device or on their way there.
    pub(crate) fn can_send(&self, ahead: usize) -> bool {
        self.to_send.first_key_value().is_some_and(|(number, _)| *number < self.delivered + ahead)
    }

    /// The numbers of batches that are open, to pin, to send, and ready.
    pub(crate) fn queues(&self) -> [usize; 4] {
        [self.opened.saturating_sub(self.delivered), self.to_pin.len(), self.to_send.len(), self.ready.len()]
    }

    /// How long the consumer has waited for its next batch.
    pub(crate) fn starved(&self) -> Duration {
        self.waiting.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// The same if the consumer needs what is asked about, else zero.
    pub(crate) fn starved_if(&self, needed: bool) -> Duration {
        if needed { self.starved() } else { Duration::ZERO }
    }

    /// Whether the consumer's next batch is the next to open, so that nothing is on its way.
    pub(crate) fn next_to_open(&self) -> bool {
        self.opened <= self.delivered // `opened` is less if batches were given up
    }

    /// Whether the consumer's next batch is the one in the pin stage.
    pub(crate) fn next_in_pin(&self) -> bool {
        self.pinned == self.delivered + 1
    }
}

impl<O> Epochs<O> {
    pub(crate) fn new(workers: usize) -> Self {
        Self { runs: Vec::new(), next_id: 0, opening: false, in_hand: vec![None; workers], closed: false }
    }

    pub(crate) fn run(&mut self, id: RunId) -> Option<&mut Run<O>> {
        self.runs.iter_mut().find(|run| run.id == id)
    }

    /// Whether somebody waits for a batch. Nobody does if it was given up, or if its epoch has ended.
    pub(crate) fn is_awaited(&self, (id, number): (RunId, usize)) -> bool {
        self.runs.iter().any(|run| run.id == id && number >= run.delivered)
    }

    /// Whether a worker is one of the first `wanted`. A worker does not count if nobody waits for what it has in hand,
    /// because it may hang there. The same workers are always at work, so that the others sleep undisturbed.
    pub(crate) fn is_wanted(&self, worker: usize, wanted: usize) -> bool {
        let before = self.in_hand.iter().take(worker);
        // The second condition alone would do; the first is a quick check.
        worker < wanted || before.filter(|batch| batch.is_none_or(|batch| self.is_awaited(batch))).count() < wanted
    }

    /// Tells which epochs one more worker may work for: all of them, or only those of which nothing waits to be sent.
    /// An epoch whose consumer is away must not make a worker rest that could work for another epoch.
    fn wants(&self, flow: &Flow) -> impl Fn(&Run<O>) -> bool + use<O> {
        let at_work = self.in_hand.iter().flatten().filter(|batch| self.is_awaited(**batch)).count();
        let all = at_work < flow.steady();
        move |run| all || run.to_send.is_empty()
    }

    pub(crate) fn has_work(&self, window: usize, flow: &Flow) -> bool {
        let wants = self.wants(flow);
        let works = |run: &Run<O>| !run.tasks.is_empty() || (!self.opening && run.can_open(window));
        self.runs.iter().any(|run| wants(run) && works(run))
    }

    /// Takes the next work for a worker. Rows of an open batch come before a new batch.
    pub(crate) fn take_work(&mut self, worker: usize, window: usize, flow: &Flow) -> Option<Work<O>> {
        let wants = self.wants(flow);
        for run in self.runs.iter_mut().filter(|run| wants(run)) {
            if let Some(task) = run.tasks.pop_front() {
                self.in_hand[worker] = Some((run.id, run.tasks_of));
                return Some(Work::Task { run: run.id, number: run.tasks_of, task });
            }
        }
        if self.opening || !self.runs.iter().any(|run| wants(run) && run.can_open(window)) {
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
        batch::BatchPlace,
        device::Uploader,
        memory::{Pool, Wanted},
        order::{Distributed, Orders, Sampling, SequentialSampler},
    };

    fn run_id(number: u64) -> RunId {
        RunId { number, epoch: 0 }
    }

    /// An epoch of nine batches of one sample each.
    fn epoch(id: RunId) -> Run<()> {
        let sampling = Sampling::Samples { sampler: Arc::new(SequentialSampler), batch_size: 1, drop_last: false };
        let orders = Orders { sampling, dataset_len: 9, distributed: Distributed::alone(), slice: None, resumed: None };
        Run::new(id, orders.epoch(0).unwrap().order, 0..9)
    }

    /// With `Auto` down to one worker, a call that hangs must not make all others rest.
    #[test]
    fn a_worker_that_hangs_in_a_batch_that_was_given_up_is_replaced() {
        let mut epochs = Epochs::<()>::new(5);
        let (id, gone) = (run_id(1), run_id(0));
        epochs.runs.push(epoch(id));
        let wanted =
            |epochs: &Epochs<()>, of| (0..5).filter(|worker| epochs.is_wanted(*worker, of)).collect::<Vec<_>>();
        assert_eq!(wanted(&epochs, 1), [0], "nobody has anything in hand");
        epochs.in_hand = vec![Some((id, 2)), Some((gone, 5)), Some((id, 3)), None, None];
        assert_eq!(wanted(&epochs, 1), [0]);
        assert_eq!(wanted(&epochs, 2), [0, 1, 2], "one of them is of no use");
        epochs.runs[0].delivered = 3; // what the first worker has in hand was given up
        assert_eq!(wanted(&epochs, 1), [0, 1, 2]);
        assert_eq!(wanted(&epochs, 3), [0, 1, 2, 3, 4]);
        epochs.in_hand[0] = Some(ELSEWHERE);
        assert_eq!(wanted(&epochs, 1), [0, 1, 2], "it tells of an error");
        epochs.in_hand[0] = None; // it returns after all
        assert_eq!(wanted(&epochs, 1), [0]);
        assert_eq!(wanted(&epochs, 3), [0, 1, 2, 3]);
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

    impl Filled<()> for Nothing {
        fn at(&self) -> BatchPlace {
            unreachable!("it is only counted")
        }

        fn needs_pin(&self) -> bool {
            unreachable!("it is only counted")
        }

        fn pin(self: Box<Self>, _: &Arc<Pool>, _: Wanted<'_>) -> Result<Box<dyn Filled<()>>, Error> {
            unreachable!("it is only counted")
        }

        fn send(self: Box<Self>, _: &Arc<Pool>, _: &mut Uploader) -> Result<Ready<()>, Error> {
            unreachable!("it is only counted")
        }
    }

    /// While workers rest for an epoch that has tasks left, its next batch is not opened.
    #[test]
    fn a_batch_with_tasks_left_is_not_followed_by_another() {
        let flow = flow();
        let mut epochs = Epochs::<()>::new(flow.workers);
        let (resting, here) = (run_id(0), run_id(1));
        epochs.runs.extend([epoch(resting), epoch(here)]);
        epochs.in_hand[..flow.steady()].fill(Some((resting, 1)));
        epochs.runs[0].to_send.insert(0, Box::new(Nothing));
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
        let (away, here) = (run_id(0), run_id(1));
        epochs.runs.extend([epoch(away), epoch(here)]);
        epochs.in_hand[..flow.steady()].fill(Some((here, 5)));
        let wanted = |epochs: &Epochs<()>| [0, 1].map(|at| epochs.wants(&flow)(&epochs.runs[at]));
        assert_eq!(wanted(&epochs), [true, true]);
        epochs.runs[0].to_send.insert(flow.ahead(), Box::new(Nothing));
        assert_eq!(wanted(&epochs), [false, true]);
        epochs.runs[1].to_send.insert(0, Box::new(Nothing));
        assert_eq!(wanted(&epochs), [false, false]);
        epochs.in_hand[0] = None;
        assert_eq!(wanted(&epochs), [true, true]);
        epochs.in_hand.fill(Some((here, 5)));
        epochs.runs.iter_mut().for_each(|run| run.to_send.clear());
        assert_eq!(wanted(&epochs), [true, true]);
    }
}
