//! One epoch in progress: the order that is still to come, and its batches at every step.

use crate::{
    batch::{Queues, Ready, Step, Task},
    fault::{Error, Skips},
    memory::Ticket,
    order::Feed,
    vocabulary::{BatchKey, Place, Stage},
};
use burn::tensor::StreamId;
use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

/// Tells the epochs of a pipeline apart. Iterators of several copies of a loader may be in the same epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunId(pub(crate) u64);

/// One batch of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchId {
    pub(crate) run: RunId,
    pub(crate) key: BatchKey,
}

impl BatchId {
    pub(crate) fn place(self, stage: Stage) -> Place {
        Place::batch(stage, self.key)
    }
}

/// What the consumer gets at the place of a batch.
pub(crate) struct Delivery<O> {
    pub(crate) place: Place,
    pub(crate) ready: Result<Ready<O>, Error>,
    pub(crate) skips: Skips,
}

/// One epoch in progress.
pub(crate) struct Run<O> {
    pub(crate) id: RunId,
    /// The loader's epoch.
    pub(crate) epoch: usize,
    /// `None` while a worker opens a batch, and when no batch is left to open.
    pub(crate) feed: Option<Feed>,
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
    /// Batches below this number are past the pin thread.
    pub(crate) pinned: usize,
    /// Batches on their way from the workers to the consumer.
    pub(crate) queues: Queues<O>,
    /// Batches and errors for the consumer, each with the time at which it was put here.
    pub(crate) ready: BTreeMap<usize, (Instant, Result<Ready<O>, Error>)>,
    /// What was skipped or replaced in batches that are not delivered yet.
    pub(crate) skips: BTreeMap<usize, Skips>,
    /// The CubeCL stream of the consumer's thread.
    pub(crate) consumer: StreamId,
    /// The time at which the consumer began to wait for the next batch.
    pub(crate) waiting: Option<Instant>,
    pub(crate) abandoned: Arc<AtomicBool>,
}

impl<O> Run<O> {
    /// An epoch of the batches with these numbers, none of them opened yet.
    pub(crate) fn new(id: RunId, epoch: usize, feed: Feed, batches: Range<usize>) -> Self {
        let Range { start: first, end } = batches;
        Self {
            id,
            epoch,
            feed: Some(feed).filter(|_| first < end),
            end,
            opened: first,
            delivered: first,
            tasks: VecDeque::new(),
            tasks_of: first,
            permits: BTreeMap::new(),
            queues: Queues::new(),
            pinned: first,
            ready: BTreeMap::new(),
            skips: BTreeMap::new(),
            consumer: StreamId::current(),
            waiting: None,
            abandoned: Arc::default(),
        }
    }

    /// A batch of this epoch.
    pub(crate) fn batch(&self, number: usize) -> BatchId {
        BatchId { run: self.id, key: BatchKey::new(self.epoch, number) }
    }

    /// Whether the next batch may be opened. It may not before workers have taken all tasks of the batch before.
    pub(crate) fn can_open(&self, most_open: usize) -> bool {
        self.tasks.is_empty() && self.feed.is_some() && self.opened < self.end.min(self.delivered + most_open)
    }

    /// The numbers of batches that are open, to pin, to send, and ready.
    pub(crate) fn queues(&self) -> [usize; 4] {
        let waits = |step: Step| self.queues.waiting()[step as usize];
        [self.opened.saturating_sub(self.delivered), waits(Step::Pin), waits(Step::Send), self.ready.len()]
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
}
