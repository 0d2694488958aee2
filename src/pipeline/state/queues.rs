//! How batches go from thread to thread: one puts a batch into the queue where the next finds it.

use super::{Epoch, State};
use crate::{
    batch::{Filled, Queue, Ready},
    fault::{Error, Skips},
    vocabulary::BatchKey,
};
use burn::tensor::StreamId;
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};

/// A batch for the pin thread, and the flag that tells whether its epoch has ended.
pub(crate) type PinTask<O> = (BatchKey, Box<dyn Filled<O>>, Arc<AtomicBool>);

impl<O> State<O> {
    /// Adds to the bad samples of a batch. Returns them if nobody wants the batch.
    pub(crate) fn skipped(&mut self, batch: BatchKey, skips: Skips) -> Option<Skips> {
        match self.epoch(batch.run) {
            Some(epoch) => epoch.skips.entry(batch.number).or_default().merge(skips),
            None => Some(skips),
        }
    }

    /// Puts a batch into a queue; returns it if nobody wants it.
    pub(crate) fn put(
        &mut self,
        queue: Queue,
        batch: BatchKey,
        filled: Box<dyn Filled<O>>,
    ) -> Option<Box<dyn Filled<O>>> {
        match self.epoch(batch.run) {
            Some(epoch) => epoch.queues[queue as usize].insert(batch.number, filled),
            None => Some(filled),
        }
    }

    /// Puts a batch, or its error, at its place for the consumer; returns it if nobody wants it.
    pub(crate) fn put_ready(
        &mut self,
        batch: BatchKey,
        ready: Result<Ready<O>, Error>,
        now: Instant,
    ) -> Option<Result<Ready<O>, Error>> {
        match self.epoch(batch.run) {
            Some(epoch) => epoch.ready.insert(batch.number, (now, ready)).map(|(_, ready)| ready),
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
            let filled = epoch.queues[Queue::Pin as usize].remove(&next)?;
            epoch.pinned = next + 1;
            Some((epoch.batch(next), filled, Arc::clone(&epoch.abandoned)))
        })
    }

    /// Whether a batch waits in the queue for the device and may go there now.
    pub(crate) fn may_send(&self) -> bool {
        let ahead = self.depth.on_device();
        let first = |epoch: &Epoch<O>| epoch.queues[Queue::Send as usize].first_key_value().map(|(number, _)| *number);
        self.epochs.iter().any(|epoch| first(epoch).is_some_and(|number| number < epoch.delivered + ahead))
    }

    /// Takes the next batch that may go to the device, with the CubeCL stream of its consumer.
    pub(crate) fn take_to_send(&mut self) -> Option<(BatchKey, StreamId, Box<dyn Filled<O>>)> {
        let ahead = self.depth.on_device();
        self.epochs.iter_mut().find_map(|epoch| {
            let next = epoch.queues[Queue::Send as usize].first_entry();
            let next = next.filter(|next| *next.key() < epoch.delivered + ahead)?;
            let (number, filled) = next.remove_entry();
            Some((epoch.batch(number), epoch.stream, filled))
        })
    }

    /// Notes from when until when a filled batch waited for room on the device.
    pub(crate) fn was_full(&mut self, batch: BatchKey, since: Instant, until: Instant) {
        if let Some(epoch) = self.epoch(batch.run) {
            epoch.full.insert(batch.number, (since, until));
        }
    }
}
