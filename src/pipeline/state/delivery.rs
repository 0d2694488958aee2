//! What the consumer of an epoch finds: its batches in order, and how long it waited for each.

use super::{Epoch, State};
use crate::{
    batch::{Delivery, Ready},
    fault::Error,
    memory::Permit,
    vocabulary::EpochId,
};
use burn::tensor::StreamId;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// What the consumer of an epoch finds.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(crate) enum Found<O> {
    /// The next batch, or its error.
    Batch {
        delivery: Delivery<O>,
        /// Since when it was ready.
        since: Instant,
    },
    /// No batch is ready yet.
    Nothing {
        /// Whether the next batch is not open, so that it needs a slot.
        unopened: bool,
    },
    /// The epoch is over.
    Over,
}

impl<O> State<O> {
    /// Notes that the consumer of an epoch asks for its next batch, from a thread with this CubeCL stream. Returns how
    /// many batches are open, to pin, to send, and ready.
    pub(crate) fn asked(&mut self, id: EpochId, stream: StreamId) -> Option<[usize; 4]> {
        let epoch = self.epoch(id)?;
        epoch.stream = stream;
        let [to_pin, to_send] = epoch.queues.each_ref().map(BTreeMap::len);
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
        let key = epoch.batch(number);
        let waited = match epoch.full.remove(&number) {
            Some((since, until)) if until > asked => since.saturating_duration_since(asked),
            _ => now.saturating_duration_since(asked),
        };
        let skips = epoch.skips.remove(&number).unwrap_or_default();
        epoch.delivered += 1;
        epoch.waiting = None;
        Found::Batch { delivery: Delivery { key, ready, skips, waited }, since }
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
fn permit<O>((_, ready): &mut (Instant, Result<Ready<O>, Error>)) -> Option<Permit> {
    match ready {
        Ok(Ready::Finished(finished)) => finished.permit.take(),
        _ => None,
    }
}
