//! The epochs in progress of one copy of a loader: where each batch is, and what a worker does next.
//!
//! A state machine without threads, locks, clocks or devices. `pipeline.rs` has the lock around it, and the times come
//! from outside. src/README.md has tables of the states of a batch and of a worker.

use crate::{
    batch::{Queues, Ready, Task, ToPin, ToSend},
    fault::{Error, Skips},
    memory::Permit,
    order::Feed,
    vocabulary::{BatchKey, Place, Stage},
};
use burn::tensor::StreamId;
use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Batches that may be on their way to the device, beyond the `prefetch` batches that are ready. Without them a
/// transfer thread waits for the consumer while the link is idle; see benches/README.md.
const ON_THE_WAY: usize = 2;

/// Tells the epochs of a copy apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EpochId(u64);

/// One batch of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchId {
    epoch: EpochId,
    pub(crate) key: BatchKey,
}

impl BatchId {
    pub(crate) fn place(self, stage: Stage) -> Place {
        Place::batch(stage, self.key)
    }
}

/// How far the pipeline may run ahead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Depth {
    /// Batches ready ahead of the step.
    pub(crate) prefetch: usize,
    pub(crate) slots: usize,
}

impl Depth {
    /// Batches that may be open ahead of the consumer. Permits allow no more, except after errors: an error holds no
    /// permit.
    fn open(self) -> usize {
        self.prefetch + self.slots
    }

    /// Batches ahead of the step that may be on the device or on their way there.
    pub(crate) fn on_device(self) -> usize {
        self.prefetch + ON_THE_WAY
    }
}

/// Work for a worker.
pub(crate) enum Work<O> {
    /// Some rows of a batch.
    Task { batch: BatchId, task: Box<dyn Task<O>> },
    /// A batch must be opened. Its epoch has lent its feed for this, so no other worker opens its next batch.
    Open { batch: BatchId, feed: Feed, permit: Permit, abandoned: Arc<AtomicBool>, since: Instant },
}

/// A batch for the pin thread, and what tells whether its epoch has ended.
pub(crate) type PinTask<O> = (BatchId, Box<dyn ToPin<O>>, Arc<AtomicBool>);

/// What the consumer of an epoch finds.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(crate) enum Found<O> {
    /// The next batch, or its error.
    Batch(Delivery<O>),
    /// Nothing yet.
    Nothing {
        /// Whether the next batch is not open, so that it needs a slot.
        unopened: bool,
    },
    /// The epoch is over.
    Over,
}

/// A batch that leaves the pipeline.
pub(crate) struct Delivery<O> {
    pub(crate) batch: BatchId,
    /// Since when it was ready.
    pub(crate) since: Instant,
    pub(crate) ready: Result<Ready<O>, Error>,
    pub(crate) skips: Skips,
    /// How long the consumer waited for it; not for the device to make room.
    pub(crate) waited: Duration,
}

/// What is left of an epoch that has ended. Its drop is user code: not under a lock.
pub(crate) struct Rest<O> {
    pub(crate) next: BatchId,
    /// Batches that were not delivered, the next one included.
    pub(crate) left: usize,
    pub(crate) abandoned: Arc<AtomicBool>,
    _epoch: Epoch<O>,
}

/// One epoch in progress.
struct Epoch<O> {
    id: EpochId,
    /// The loader's number of the epoch, and the device that it is for.
    key: BatchKey,
    /// `None` while a worker opens a batch, and when no batch is left to open.
    feed: Option<Feed>,
    /// The number after that of the last batch.
    end: usize,
    /// The number of the next batch to open; `delivered` is that of the next batch to deliver.
    opened: usize,
    delivered: usize,
    /// Tasks of the batch that was opened last.
    tasks: VecDeque<Box<dyn Task<O>>>,
    /// The batches below this number are past the pin thread.
    pinned: usize,
    /// Batches on their way from the workers to the consumer.
    queues: Queues<O>,
    /// Batches and errors for the consumer, each with the time at which it became ready.
    ready: BTreeMap<usize, (Instant, Result<Ready<O>, Error>)>,
    /// What was skipped or replaced in batches that are not delivered yet.
    skips: BTreeMap<usize, Skips>,
    /// From when until when filled batches waited for room on the device.
    full: BTreeMap<usize, (Instant, Instant)>,
    /// The CubeCL stream of the consumer's thread.
    stream: StreamId,
    /// Since when the consumer waits for the next batch.
    waiting: Option<Instant>,
    /// Since when a batch could be opened if there were a permit.
    lacks: Option<Instant>,
    abandoned: Arc<AtomicBool>,
}

impl<O> Epoch<O> {
    fn batch(&self, number: usize) -> BatchId {
        BatchId { epoch: self.id, key: BatchKey { number, ..self.key } }
    }

    /// Whether the next batch may be opened, but for a permit. Workers first take all tasks of the batch before.
    fn may_open(&self, depth: Depth) -> bool {
        self.tasks.is_empty() && self.feed.is_some() && self.opened < self.end.min(self.delivered + depth.open())
    }

    /// Returns true if a worker could do something: run a task, or open the next batch.
    fn has_work(&self, has_permit: bool, depth: Depth) -> bool {
        !self.tasks.is_empty() || (has_permit && self.may_open(depth))
    }

    /// How urgent its work is; the least comes first. Work for the batch that is next in the consumer's order comes
    /// before others; then that of an epoch whose consumer waits, the longest first; then tasks before opening.
    fn urgency(&self) -> (usize, bool, Option<Instant>, bool) {
        let opens = self.tasks.is_empty();
        let number = if opens { self.opened } else { self.opened - 1 };
        (number - self.delivered.min(number), self.waiting.is_none(), self.waiting, opens)
    }
}

/// The epochs in progress of one copy of a loader.
pub(crate) struct State<O> {
    depth: Depth,
    epochs: Vec<Epoch<O>>,
    next_id: u64,
    /// For each worker that was ever started, whether it runs.
    running: Vec<bool>,
    /// Workers that there are to be. Those with higher numbers end.
    workers: usize,
    closed: bool,
}

impl<O> State<O> {
    pub(crate) fn new(depth: Depth) -> Self {
        Self { depth, epochs: Vec::new(), next_id: 0, running: Vec::new(), workers: 0, closed: false }
    }

    fn epoch(&mut self, id: EpochId) -> Option<&mut Epoch<O>> {
        self.epochs.iter_mut().find(|epoch| epoch.id == id)
    }

    /// Begins an epoch of the batches with these numbers. Without batches it has no feed.
    pub(crate) fn begin(&mut self, key: BatchKey, feed: Option<Feed>, batches: Range<usize>) -> EpochId {
        let (id, Range { start: first, end }) = (EpochId(self.next_id), batches);
        self.next_id += 1;
        self.epochs.push(Epoch {
            id,
            key,
            feed,
            end,
            opened: first,
            delivered: first,
            tasks: VecDeque::new(),
            pinned: first,
            queues: Queues::new(),
            ready: BTreeMap::new(),
            skips: BTreeMap::new(),
            full: BTreeMap::new(),
            stream: StreamId::current(),
            waiting: None,
            lacks: None,
            abandoned: Arc::default(),
        });
        id
    }

    /// Ends an epoch, finished or not.
    pub(crate) fn end(&mut self, id: EpochId) -> Option<Rest<O>> {
        let at = self.epochs.iter().position(|epoch| epoch.id == id)?;
        let epoch = self.epochs.swap_remove(at);
        let (next, left) = (epoch.batch(epoch.delivered), epoch.end - epoch.delivered);
        Some(Rest { next, left, abandoned: Arc::clone(&epoch.abandoned), _epoch: epoch })
    }

    /// The number of epochs in progress.
    pub(crate) fn epochs(&self) -> usize {
        self.epochs.len()
    }

    /// Ends the work on all epochs. Their consumers still find what is ready.
    pub(crate) fn close(&mut self) -> impl Sized + use<O> {
        self.closed = true;
        let on_the_way = |epoch: &mut Epoch<O>| {
            epoch.abandoned.store(true, Relaxed);
            (mem::take(&mut epoch.tasks), epoch.queues.take(None))
        };
        self.epochs.iter_mut().map(on_the_way).collect::<Vec<_>>()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    // Workers.

    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// Sets how many workers there are to be; returns the numbers of those that have to be started.
    pub(crate) fn set_workers(&mut self, workers: usize) -> Vec<usize> {
        self.workers = workers;
        self.running.resize(self.running.len().max(workers), false);
        let stopped = (0..workers).filter(|worker| !self.running[*worker]).collect();
        self.running[..workers].fill(true);
        stopped
    }

    /// Notes that a worker could not be started.
    pub(crate) fn not_started(&mut self, worker: usize) {
        self.running[worker] = false;
    }

    /// Whether a worker goes on. One that does not has to end.
    pub(crate) fn goes_on(&mut self, worker: usize) -> bool {
        let goes_on = !self.closed && worker < self.workers;
        if !goes_on {
            self.running[worker] = false;
        }
        goes_on
    }

    /// Whether a worker could do something.
    pub(crate) fn has_work(&self, has_permit: bool) -> bool {
        !self.closed && self.epochs.iter().any(|epoch| epoch.has_work(has_permit, self.depth))
    }

    /// Takes the most urgent work for a worker that has asked for it at `asked`. `permit` takes a permit, if one is left.
    pub(crate) fn take_work(
        &mut self,
        has_permit: bool,
        permit: impl FnOnce() -> Option<Permit>,
        asked: Instant,
        now: Instant,
    ) -> Option<Work<O>> {
        let depth = self.depth;
        if !has_permit {
            self.epochs.iter_mut().filter(|epoch| epoch.may_open(depth)).for_each(|epoch| {
                epoch.lacks.get_or_insert(now);
            });
        }
        let workable = self.epochs.iter_mut().filter(|epoch| epoch.has_work(has_permit, depth));
        let epoch = workable.min_by_key(|epoch| epoch.urgency())?;
        let work = match epoch.tasks.pop_front() {
            Some(task) => Work::Task { batch: epoch.batch(epoch.opened - 1), task },
            None => {
                let permit = permit()?;
                let feed = epoch.feed.take()?; // it is there, or the epoch had no work
                let since = epoch.lacks.take().map_or(now, |lacks| lacks.max(asked));
                Work::Open {
                    batch: epoch.batch(epoch.opened),
                    feed,
                    permit,
                    abandoned: Arc::clone(&epoch.abandoned),
                    since,
                }
            }
        };
        Some(work)
    }

    /// Takes in a batch that was opened: its tasks, or an error in its place. Returns how many tasks there are, and what
    /// nobody wants any more.
    #[expect(clippy::type_complexity, reason = "it is only dropped")]
    pub(crate) fn opened(
        &mut self,
        batch: BatchId,
        feed: Feed,
        tasks: Result<Vec<Box<dyn Task<O>>>, Error>,
        now: Instant,
    ) -> (usize, Option<(Feed, Result<Vec<Box<dyn Task<O>>>, Error>)>) {
        let Some(epoch) = self.epoch(batch.epoch) else { return (0, Some((feed, tasks))) };
        epoch.feed = Some(feed);
        epoch.opened += 1;
        match tasks {
            Ok(tasks) => epoch.tasks = tasks.into(),
            Err(error) => drop(epoch.ready.insert(batch.key.number, (now, Err(error)))),
        }
        (epoch.tasks.len(), None)
    }

    /// Takes out the tasks of a batch that nobody has begun.
    pub(crate) fn drop_tasks(&mut self, batch: BatchId) -> impl Sized + use<O> {
        let epoch = self.epoch(batch.epoch).filter(|epoch| epoch.opened == batch.key.number + 1);
        epoch.map(|epoch| mem::take(&mut epoch.tasks))
    }

    // All threads.

    /// Whether somebody waits for a batch. Nobody does if its epoch has ended.
    pub(crate) fn is_awaited(&self, batch: BatchId) -> bool {
        !self.closed && self.epochs.iter().any(|epoch| epoch.id == batch.epoch)
    }

    /// Adds to the bad samples of a batch; returns what nobody wants.
    pub(crate) fn skipped(&mut self, batch: BatchId, skips: Skips) -> Option<Skips> {
        match self.epoch(batch.epoch) {
            Some(epoch) => epoch.skips.entry(batch.key.number).or_default().merge(skips),
            None => Some(skips),
        }
    }

    /// Puts a batch into the queue of the pin thread; returns it if nobody wants it.
    pub(crate) fn put_to_pin(&mut self, batch: BatchId, filled: Box<dyn ToPin<O>>) -> Option<Box<dyn ToPin<O>>> {
        match self.epoch(batch.epoch) {
            Some(epoch) => epoch.queues.to_pin.insert(batch.key.number, filled),
            None => Some(filled),
        }
    }

    /// Puts a batch into the queue of the transfer threads; returns it if nobody wants it.
    pub(crate) fn put_to_send(&mut self, batch: BatchId, filled: Box<dyn ToSend<O>>) -> Option<Box<dyn ToSend<O>>> {
        match self.epoch(batch.epoch) {
            Some(epoch) => epoch.queues.to_send.insert(batch.key.number, filled),
            None => Some(filled),
        }
    }

    /// Puts a batch, or its error, at its place for the consumer; returns it if nobody wants it.
    pub(crate) fn put_ready(
        &mut self,
        batch: BatchId,
        ready: Result<Ready<O>, Error>,
        now: Instant,
    ) -> Option<Result<Ready<O>, Error>> {
        match self.epoch(batch.epoch) {
            Some(epoch) => epoch.ready.insert(batch.key.number, (now, ready)).map(|(_, ready)| ready),
            None => Some(ready),
        }
    }

    /// Takes the next batch for the pin thread. It works in order, because a batch that waits there for memory must not
    /// hold up the one that the consumer needs first. Batches that failed on the way are skipped.
    pub(crate) fn take_to_pin(&mut self) -> Option<PinTask<O>> {
        self.epochs.iter_mut().find_map(|epoch| {
            let mut next = epoch.pinned.max(epoch.delivered);
            while epoch.ready.contains_key(&next) {
                next += 1;
            }
            let filled = epoch.queues.to_pin.remove(&next)?;
            epoch.pinned = next + 1;
            Some((epoch.batch(next), filled, Arc::clone(&epoch.abandoned)))
        })
    }

    /// Takes the next batch that may go to the device, with the CubeCL stream of its consumer.
    pub(crate) fn take_to_send(&mut self) -> Option<(BatchId, StreamId, Box<dyn ToSend<O>>)> {
        let ahead = self.depth.on_device();
        self.epochs.iter_mut().find_map(|epoch| {
            let next = epoch.queues.to_send.first_entry().filter(|next| *next.key() < epoch.delivered + ahead)?;
            let (number, filled) = next.remove_entry();
            Some((epoch.batch(number), epoch.stream, filled))
        })
    }

    /// Notes from when until when a filled batch waited for room on the device.
    pub(crate) fn was_full(&mut self, batch: BatchId, since: Instant, until: Instant) {
        if let Some(epoch) = self.epoch(batch.epoch) {
            epoch.full.insert(batch.key.number, (since, until));
        }
    }

    /// Returns the longest time that a consumer has waited until now.
    pub(crate) fn starved(&self, now: Instant) -> Duration {
        let waits = |epoch: &Epoch<O>| epoch.waiting.map(|since| now.saturating_duration_since(since));
        self.epochs.iter().filter_map(waits).max().unwrap_or_default()
    }

    // Consumers.

    /// Notes that the consumer of an epoch asks for its next batch, from a thread with this CubeCL stream. Returns how
    /// many batches are open, to pin, to send, and ready.
    pub(crate) fn asked(&mut self, id: EpochId, stream: StreamId) -> Option<[usize; 4]> {
        let epoch = self.epoch(id)?;
        epoch.stream = stream;
        let [to_pin, to_send] = epoch.queues.waiting();
        Some([epoch.opened.saturating_sub(epoch.delivered), to_pin, to_send, epoch.ready.len()])
    }

    /// Takes the next batch of an epoch, if it is ready. The consumer has waited for it since `asked`.
    pub(crate) fn find(&mut self, id: EpochId, asked: Instant, now: Instant) -> Found<O> {
        let Some(epoch) = self.epoch(id) else { return Found::Over };
        let number = epoch.delivered;
        if number == epoch.end {
            return Found::Over;
        }
        let Some((since, ready)) = epoch.ready.remove(&number) else {
            epoch.waiting.get_or_insert(asked);
            return Found::Nothing { unopened: epoch.opened <= number && epoch.feed.is_some() };
        };
        let batch = epoch.batch(number);
        let waited = match epoch.full.remove(&number) {
            Some((since, until)) if until > asked => since.saturating_duration_since(asked),
            _ => now.saturating_duration_since(asked),
        };
        let skips = epoch.skips.remove(&number).unwrap_or_default();
        epoch.delivered += 1;
        epoch.waiting = None;
        Found::Batch(Delivery { batch, since, ready, skips, waited })
    }

    /// Takes the permits of the batches that are ready. Only on a CPU backend do such batches have permits. They are to
    /// be dropped outside the lock.
    pub(crate) fn take_permits(&mut self) -> Vec<Permit> {
        let ready = self.epochs.iter_mut().flat_map(|epoch| epoch.ready.values_mut());
        let permit = |(_, ready): &mut (Instant, Result<Ready<O>, Error>)| match ready {
            Ok(Ready::Finished(finished)) => finished.permit.take(),
            _ => None,
        };
        ready.filter_map(permit).collect()
    }
}

#[cfg(test)]
mod tests;
