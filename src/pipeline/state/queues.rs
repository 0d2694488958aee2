//! Passes batches from thread to thread through queues.

use super::{Epoch, State};
use crate::{
    batch::{Batch, Queue},
    vocabulary::BatchKey,
};
use burn::tensor::StreamId;
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};

impl<O> State<O> {
    /// Puts a batch into the queue for its state, or at its place for the consumer. Returns it if it is no longer
    /// wanted.
    pub(crate) fn put(&mut self, batch: Batch<O>, now: Instant) -> Option<Batch<O>> {
        let Some(epoch) = self.epoch(batch.key.iterator) else { return Some(batch) };
        let number = batch.key.number;
        match batch.queue() {
            Some(queue) => epoch.queues[queue as usize].insert(number, batch),
            None => epoch.ready.insert(number, (now, batch)).map(|(_, batch)| batch),
        }
    }

    /// Takes the next batch for the pin thread, and the flag that tells whether its epoch has ended. It works in order,
    /// because a batch that waits there for memory must not hold up the one that the consumer needs first. Batches that
    /// failed on the way are skipped.
    pub(crate) fn take_to_pin(&mut self) -> Option<(Batch<O>, Arc<AtomicBool>)> {
        self.epochs.iter_mut().find_map(|epoch| {
            let mut next = epoch.pinned.max(epoch.delivered);
            while epoch.ready.contains_key(&next) {
                next += 1;
            }
            let batch = epoch.queues[Queue::Pin as usize].remove(&next)?;
            epoch.pinned = next + 1;
            Some((batch, Arc::clone(&epoch.abandoned)))
        })
    }

    /// Whether a batch waits in the queue for the device and may go there now.
    pub(crate) fn may_send(&self) -> bool {
        let ahead = self.depth.on_device();
        let first = |epoch: &Epoch<O>| epoch.queues[Queue::Send as usize].first_key_value().map(|(number, _)| *number);
        self.epochs.iter().any(|epoch| first(epoch).is_some_and(|number| number < epoch.delivered + ahead))
    }

    /// Takes the next batch that may go to the device, with the CubeCL stream of its consumer.
    pub(crate) fn take_to_send(&mut self) -> Option<(Batch<O>, StreamId)> {
        let ahead = self.depth.on_device();
        self.epochs.iter_mut().find_map(|epoch| {
            let next = epoch.queues[Queue::Send as usize].first_entry();
            let next = next.filter(|next| *next.key() < epoch.delivered + ahead)?;
            Some((next.remove(), epoch.stream))
        })
    }

    /// Notes the period in which a filled batch waited for space on the device.
    pub(crate) fn was_full(&mut self, batch: BatchKey, since: Instant, until: Instant) {
        if let Some(epoch) = self.epoch(batch.iterator) {
            epoch.full.insert(batch.number, (since, until));
        }
    }
}
