//! One epoch in progress: the order that is still to come, and its batches at every step.

use super::branch::Branch;
use crate::{
    batch::{Queues, Ready, Step, Task},
    fault::{Error, Skips},
    memory::{Permit, Ticket},
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

/// Tells the epochs of a loader and its copies apart. Iterators of several copies of a loader may be in the same epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunId(pub(crate) u64);

/// One batch of an epoch.
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
    /// How long the consumer waited for the loader, and not for the device to make room.
    pub(crate) waited: Duration,
    /// Whether no epoch has just started, which takes more workers than `Auto` has chosen.
    pub(crate) as_chosen: bool,
}

impl<O> Delivery<O> {
    pub(super) fn error(place: Place, error: Error, waited: Duration) -> Self {
        Self { place, ready: Err(error), skips: Skips::default(), waited, as_chosen: false }
    }
}

/// A batch that is being opened. Its epoch has lent its feed for this, so no other worker opens its next batch.
pub(crate) struct Opening<O> {
    pub(super) of: Arc<Branch<O>>,
    pub(super) batch: BatchId,
    pub(super) feed: Feed,
    pub(super) abandoned: Arc<AtomicBool>,
    /// The permit, or the error that says why there is none.
    pub(super) permit: Result<Permit, Error>,
    /// Since when the worker has waited for the permit.
    pub(super) since: Instant,
}

/// A worker serves a consumer whose slots are on its own NUMA node first, unless another has waited longer by this time.
const NEAR: Duration = Duration::from_millis(2);

/// How urgent work is. The least comes first. What counts, in this order: the number of batches ahead of the consumer;
/// whether nobody waits; since when the consumer waits (a little later if the slots are on another NUMA node); whether
/// they are; whether a batch is to be opened.
pub(super) type Urgency = (usize, bool, Option<Instant>, bool, bool);

/// One epoch in progress.
pub(crate) struct Run<O> {
    pub(crate) id: RunId,
    /// The copy of the loader that it is an epoch of.
    pub(crate) of: Arc<Branch<O>>,
    /// The loader's epoch.
    pub(crate) epoch: usize,
    /// `None` while a worker opens a batch, and when no batch is left to open.
    pub(crate) feed: Option<Feed>,
    /// The number of the first batch. It is not 0 in an epoch that was resumed. `end` is the number after the last.
    first: usize,
    pub(crate) end: usize,
    /// The number of the next batch to open; `delivered` is that of the next batch to deliver.
    pub(crate) opened: usize,
    pub(crate) delivered: usize,
    pub(crate) tasks: VecDeque<Box<dyn Task<O>>>,
    /// The number of the batch that `tasks` belong to.
    pub(crate) tasks_of: usize,
    /// The number of workers that have a task in hand. Those do not count whose batch was given up.
    pub(crate) hands: usize,
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
    /// From when until when filled batches waited for room on the device.
    pub(crate) full: BTreeMap<usize, (Instant, Instant)>,
    /// The CubeCL stream of the consumer's thread.
    pub(crate) consumer: StreamId,
    /// The time at which the consumer began to wait for the next batch.
    pub(crate) waiting: Option<Instant>,
    /// Since when a batch could be opened if there were a permit.
    lacks: Option<Instant>,
    /// Whether all workers are to work until the consumer has its next batch.
    pub(super) calls_all: bool,
    pub(crate) abandoned: Arc<AtomicBool>,
}

impl<O> Run<O> {
    /// An epoch of the batches with these numbers, none of them opened yet. Without batches it has no feed.
    pub(crate) fn new(id: RunId, of: Arc<Branch<O>>, epoch: usize, feed: Option<Feed>, batches: Range<usize>) -> Self {
        let Range { start: first, end } = batches;
        Self {
            id,
            of,
            epoch,
            feed,
            first,
            end,
            opened: first,
            delivered: first,
            tasks: VecDeque::new(),
            tasks_of: first,
            hands: 0,
            permits: BTreeMap::new(),
            queues: Queues::new(),
            pinned: first,
            ready: BTreeMap::new(),
            skips: BTreeMap::new(),
            full: BTreeMap::new(),
            consumer: StreamId::current(),
            waiting: None,
            lacks: None,
            calls_all: false,
            abandoned: Arc::default(),
        }
    }

    /// A batch of this epoch.
    pub(crate) fn batch(&self, number: usize) -> BatchId {
        BatchId { run: self.id, key: BatchKey { device: self.of.device, ..BatchKey::new(self.epoch, number) } }
    }

    /// Whether the next batch may be opened. It may not before workers have taken all tasks of the batch before.
    pub(crate) fn can_open(&self) -> bool {
        let most_open = || self.end.min(self.delivered + self.of.most_open());
        self.tasks.is_empty() && self.feed.is_some() && self.opened < most_open() && !self.of.is_closed()
    }

    /// Whether a worker can do something: a task, or open a batch.
    pub(crate) fn has_work(&self) -> bool {
        let opens = || self.can_open() && (self.of.pool.has_permit() || self.lacked().is_some());
        !self.tasks.is_empty() || opens()
    }

    /// How urgent its work is for a worker on a NUMA node.
    pub(super) fn urgency(&self, node: Option<u32>) -> Urgency {
        let (number, opens) = if self.tasks.is_empty() { (self.opened, true) } else { (self.tasks_of, false) };
        let far = node.is_some() && self.of.node.is_some_and(|near| Some(near) != node);
        let waits = self.waiting.map(|since| if far { since + NEAR } else { since });
        (number.saturating_sub(self.delivered), waits.is_none(), waits, far, opens)
    }

    /// Lends the feed to a worker that opens a batch, with a permit. If there was none for too long, and the consumer
    /// has waited for as long, an error takes the place of the batch.
    pub(crate) fn open(&mut self, asked: Instant) -> Option<Opening<O>> {
        let feed = self.feed.take()?; // before the permit, whose drop would take the lock that is held here
        let permit = match (self.of.pool.try_permit(), self.lacked()) {
            (Some(permit), _) => Ok(permit),
            (None, Some(waited)) => Err(Error::LeaseTimeout { waited, slots: self.of.pool.limits().slots }),
            (None, None) => {
                self.feed = Some(feed);
                return None;
            }
        };
        let since = self.lacks.take().map_or_else(Instant::now, |since| since.max(asked));
        let (of, abandoned) = (Arc::clone(&self.of), Arc::clone(&self.abandoned));
        Some(Opening { of, batch: self.batch(self.opened), feed, abandoned, permit, since })
    }

    /// Notes whether it lacks a permit. If so, returns how much longer the consumer has patience.
    pub(crate) fn lack(&mut self) -> Option<Duration> {
        if !self.can_open() {
            self.lacks = None;
            return None;
        }
        if self.of.pool.has_permit() {
            return None; // the wait ends when a worker opens the batch
        }
        self.lacks.get_or_insert_with(Instant::now);
        Some(self.of.flow.lease_timeout.saturating_sub(self.unserved()))
    }

    /// Returns how long there was no permit and the consumer had nothing else to wait for.
    fn unserved(&self) -> Duration {
        let lacks = self.lacks.map_or(Duration::ZERO, |since| since.elapsed());
        lacks.min(self.starved_if(self.next_to_open()))
    }

    /// The same, if it is too long.
    fn lacked(&self) -> Option<Duration> {
        Some(self.unserved()).filter(|waited| *waited > self.of.flow.lease_timeout)
    }

    /// The numbers of batches that are open, to pin, to send, and ready.
    pub(crate) fn queues(&self) -> [usize; 4] {
        let waits = |step: Step| self.queues.waiting()[step as usize];
        [self.opened.saturating_sub(self.delivered), waits(Step::Pin), waits(Step::Send), self.ready.len()]
    }

    /// Returns how long the consumer has waited, since it asked, for the loader to fill and send the next batch. If the
    /// filled batch found no room on the device, the rest of the wait is for the device.
    pub(super) fn waited(&mut self, asked: Instant) -> Duration {
        match self.full.remove(&self.delivered) {
            Some((since, until)) if until > asked => since.saturating_duration_since(asked),
            _ => asked.elapsed(),
        }
    }

    /// How long the consumer has waited for its next batch.
    pub(crate) fn starved(&self) -> Duration {
        self.waiting.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// The same if the consumer needs what is asked about, else zero.
    pub(crate) fn starved_if(&self, needed: bool) -> Duration {
        if needed { self.starved() } else { Duration::ZERO }
    }

    /// Whether this is the number of its first batch, and that was not delivered yet.
    pub(super) fn is_first(&self, number: usize) -> bool {
        self.delivered == self.first && number == self.first
    }

    /// Whether all workers are to work for it: its first batch is on its way, or its consumer has waited for long.
    pub(super) fn needs_all(&self) -> bool {
        (self.calls_all && !self.of.is_closed()) || self.starts()
    }

    /// Whether its first batch is on its way.
    pub(super) fn starts(&self) -> bool {
        let first = || self.first < self.end && !self.ready.contains_key(&self.first);
        let begins = || self.opened > self.first || self.may_be_opened();
        self.delivered == self.first && first() && begins() && !self.of.is_closed()
    }

    /// Whether its next batch is being opened, or nothing hinders it.
    fn may_be_opened(&self) -> bool {
        self.feed.is_none() || self.of.pool.has_permit()
    }

    /// Whether the workers have the consumer's next batch, or could open it, as `in_hand` knows.
    pub(super) fn is_with_workers(&self, in_hand: &[Option<BatchId>]) -> bool {
        let next = self.batch(self.delivered);
        let has_tasks = self.tasks_of == self.delivered && !self.tasks.is_empty();
        has_tasks || (self.next_to_open() && self.may_be_opened()) || in_hand.contains(&Some(next))
    }

    /// Whether the consumer's next batch lacks a permit.
    pub(super) fn lacks_permit(&self) -> bool {
        self.next_to_open() && !self.may_be_opened()
    }

    /// Whether the consumer's next batch is the next to open, so that nothing is on its way.
    pub(crate) fn next_to_open(&self) -> bool {
        self.opened <= self.delivered // `opened` is less if batches were given up
    }
}
