//! Delivery to the consumer of an epoch: its batches in order, and how long it waited for each.

use super::{Epoch, State};
use crate::{
    batch::{Batch, BatchState},
    memory::Permit,
    vocabulary::IteratorId,
};
use burn::tensor::StreamId;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

impl<O> State<O> {
    /// Notes that the consumer of an epoch asks for its next batch, from a thread with this CubeCL stream. Returns how
    /// many batches are open, to pin, to send, and ready.
    pub(crate) fn asked(&mut self, id: IteratorId, stream: StreamId) -> Option<[usize; 4]> {
        let epoch = self.epoch(id)?;
        epoch.stream = stream;
        let [to_pin, to_send] = epoch.queues.each_ref().map(BTreeMap::len);
        Some([epoch.opened.saturating_sub(epoch.delivered), to_pin, to_send, epoch.ready.len()])
    }

    /// Whether an epoch has no more batches.
    pub(crate) fn is_over(&mut self, id: IteratorId) -> bool {
        self.epoch(id).is_none_or(|epoch| epoch.delivered == epoch.end)
    }

    /// Whether the next batch of an epoch is not open, so that it needs a slot.
    pub(crate) fn is_unopened(&mut self, id: IteratorId) -> bool {
        self.epoch(id).is_some_and(|epoch| epoch.opened <= epoch.delivered && epoch.feed.is_some())
    }

    /// Takes the next batch of an epoch, if it is ready. Returns also how long its consumer has waited for it since `asked`,
    /// and since when it was ready.
    pub(crate) fn take_ready(
        &mut self,
        id: IteratorId,
        asked: Instant,
        now: Instant,
    ) -> Option<(Batch<O>, Duration, Instant)> {
        let epoch = self.epoch(id)?;
        let number = epoch.delivered;
        let Some((since, batch)) = epoch.ready.remove(&number) else {
            epoch.waiting.get_or_insert(asked);
            return None;
        };
        let waited = match epoch.full.remove(&number) {
            Some((since, until)) if until > asked => since.saturating_duration_since(asked),
            _ => now.saturating_duration_since(asked),
        };
        epoch.delivered += 1;
        epoch.waiting = None;
        Some((batch, waited, since))
    }

    /// Takes the permit of a batch that is ready, of an epoch whose consumer is the thread with this stream. That thread
    /// waits for another batch now, so it cannot take this one.
    pub(crate) fn take_permit_of(&mut self, stream: StreamId) -> Option<Permit> {
        let epochs = self.epochs.iter_mut().filter(|epoch| epoch.stream == stream);
        epochs.flat_map(|epoch| epoch.ready.values_mut()).find_map(permit)
    }

    /// Takes the permits of the batches that are ready. Only on a CPU backend do such batches have permits. They are to
    /// be dropped outside the lock.
    pub(crate) fn take_permits(&mut self) -> Vec<Permit> {
        let ready = self.epochs.iter_mut().flat_map(|epoch| epoch.ready.values_mut());
        ready.filter_map(permit).collect()
    }

    /// How long consumers have waited for their next batches until now: the longest of these times.
    pub(crate) fn starved(&self, now: Instant) -> Duration {
        let waits = |epoch: &Epoch<O>| epoch.waiting.map(|since| now.saturating_duration_since(since));
        self.epochs.iter().filter_map(waits).max().unwrap_or_default()
    }
}

/// Takes the permit of a batch.
fn permit<O>((_, batch): &mut (Instant, Batch<O>)) -> Option<Permit> {
    match &mut batch.state {
        BatchState::Ready { permit, .. } => permit.take(),
        _ => None,
    }
}
