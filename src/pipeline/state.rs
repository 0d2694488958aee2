//! The epochs in progress of one copy of a loader, and where each batch of them is.
//!
//! A state machine without threads, locks, clocks or devices. `pipeline.rs` has the lock around it, and times are
//! passed in. README.md of this module has tables of the states of a batch and of a worker.

pub(super) mod delivery;
mod queues;
#[cfg(test)]
mod tests;
pub(super) mod workers;

use crate::{
    batch::{Batch, Queue, Task},
    fault::discard_each,
    order::Feed,
    vocabulary::{BatchKey, IteratorId, Place, Stage},
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
    time::Instant,
};

/// Batches that may be on their way to the device, beyond the `prefetch` batches that are ready. Without them a
/// transfer thread waits for the consumer while the link is idle; see benches/README.md.
const ON_THE_WAY: usize = 2;

/// How far the pipeline may run ahead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Depth {
    /// Batches ready ahead of the step.
    pub(crate) prefetch: usize,
    pub(crate) slots: usize,
}

impl Depth {
    /// The number of batches that may be open ahead of the consumer, with or without a permit: a batch on the device holds none, nor does
    /// an error. So an epoch that is not read leaves some permits for others.
    fn open(self) -> usize {
        self.prefetch + self.slots
    }

    /// Batches ahead of the step that may be on the device or on their way there.
    pub(crate) fn on_device(self) -> usize {
        self.prefetch + ON_THE_WAY
    }
}

/// What is left of an epoch that has ended. Its drop is user code, so it must not run under a lock.
pub(crate) struct EndedEpoch<O> {
    pub(crate) next: BatchKey,
    /// Batches that were not delivered, the next one included.
    pub(crate) left: usize,
    pub(crate) abandoned: Arc<AtomicBool>,
    _epoch: Epoch<O>,
}

/// One epoch in progress.
struct Epoch<O> {
    id: IteratorId,
    /// The epoch and the device of its batches.
    key: BatchKey,
    /// `None` while a worker opens a batch, and in an epoch without batches.
    feed: Option<Feed>,
    /// The number after that of the last batch.
    end: usize,
    /// The number of the next batch to open; `delivered` is that of the next batch to deliver.
    opened: usize,
    delivered: usize,
    /// Tasks of the batch that was opened last.
    tasks: VecDeque<Task<O>>,
    /// The batches below this number are past the pin thread.
    pinned: usize,
    /// Batches on their way from the workers to the consumer, by their numbers.
    queues: [BTreeMap<usize, Batch<O>>; Queue::COUNT],
    /// Batches for the consumer, each with the time at which it became ready.
    ready: BTreeMap<usize, (Instant, Batch<O>)>,
    /// The periods in which filled batches waited for space on the device.
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
    fn batch(&self, number: usize) -> BatchKey {
        BatchKey { number, ..self.key }
    }

    /// Takes what can no longer be delivered if the threads end: tasks that were not started, and batches in queues.
    fn on_the_way(&mut self) -> (Vec<Task<O>>, Vec<Batch<O>>) {
        let queued = self.queues.each_mut().into_iter().flat_map(|queue| mem::take(queue).into_values());
        (mem::take(&mut self.tasks).into(), queued.collect())
    }
}

impl<O> Drop for Epoch<O> {
    fn drop(&mut self) {
        let place = Place::batch(Stage::Finish, self.batch(self.delivered));
        discard_each(place, mem::take(&mut self.ready).into_values());
        let (tasks, queued) = self.on_the_way();
        discard_each(place, tasks);
        discard_each(place, queued);
    }
}

/// The epochs in progress of one copy of a loader.
pub(crate) struct State<O> {
    depth: Depth,
    epochs: Vec<Epoch<O>>,
    next_id: u64,
    /// For each worker that was ever started, whether it runs.
    running: Vec<bool>,
    /// The number of workers that there are to be. Workers with higher numbers end.
    workers: usize,
    closed: bool,
}

impl<O> State<O> {
    pub(crate) fn new(depth: Depth) -> Self {
        Self { depth, epochs: Vec::new(), next_id: 0, running: Vec::new(), workers: 0, closed: false }
    }

    fn epoch(&mut self, id: IteratorId) -> Option<&mut Epoch<O>> {
        self.epochs.iter_mut().find(|epoch| epoch.id == id)
    }

    /// Begins an epoch of the batches with these numbers. Without batches it has no feed.
    pub(crate) fn add_epoch(&mut self, key: BatchKey, feed: Option<Feed>, batches: Range<usize>) -> IteratorId {
        let (id, Range { start: first, end }) = (IteratorId(self.next_id), batches);
        self.next_id += 1;
        self.epochs.push(Epoch {
            id,
            key: BatchKey { iterator: id, ..key },
            feed,
            end,
            opened: first,
            delivered: first,
            tasks: VecDeque::new(),
            pinned: first,
            queues: Default::default(),
            ready: BTreeMap::new(),
            full: BTreeMap::new(),
            stream: StreamId::current(),
            waiting: None,
            lacks: None,
            abandoned: Arc::default(),
        });
        id
    }

    /// Ends an epoch, finished or not.
    pub(crate) fn end(&mut self, id: IteratorId) -> Option<EndedEpoch<O>> {
        let at = self.epochs.iter().position(|epoch| epoch.id == id)?;
        let epoch = self.epochs.swap_remove(at);
        let (next, left) = (epoch.batch(epoch.delivered), epoch.end - epoch.delivered);
        Some(EndedEpoch { next, left, abandoned: Arc::clone(&epoch.abandoned), _epoch: epoch })
    }

    /// The number of epochs in progress.
    pub(crate) fn epochs(&self) -> usize {
        self.epochs.len()
    }

    /// Ends the work on all epochs, and returns what was on the way. Their consumers still find the batches that are ready.
    pub(crate) fn close(&mut self) -> (Vec<Task<O>>, Vec<Batch<O>>) {
        self.closed = true;
        let (mut tasks, mut queued) = (Vec::new(), Vec::new());
        for epoch in &mut self.epochs {
            epoch.abandoned.store(true, Relaxed);
            let (of_epoch, batches) = epoch.on_the_way();
            tasks.extend(of_epoch);
            queued.extend(batches);
        }
        (tasks, queued)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether a batch is still wanted: its epoch has not ended.
    pub(crate) fn is_awaited(&self, batch: BatchKey) -> bool {
        !self.closed && self.epochs.iter().any(|epoch| epoch.id == batch.iterator)
    }
}
