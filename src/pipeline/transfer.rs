//! The transfer threads: filled slots become tensors on the device, on threads and a stream of their own.

use super::{
    run::{BatchId, Run},
    shared::Pipeline,
};
use crate::{
    batch::{Step, ToSend},
    device::{Room, Uploader},
    fault::discard,
    observe::Span,
    vocabulary::Stage,
};
use burn::tensor::StreamId;
use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

/// The CubeCL stream of all transfer threads of the process, for what they ask of Burn for themselves. There is only one,
/// since CubeCL keeps a pool of device memory for each stream.
static STREAM: OnceLock<StreamId> = OnceLock::new();

/// A transfer thread.
pub(crate) fn run<O>(pipeline: &Pipeline<O>) {
    STREAM.get_or_init(StreamId::current).executes(|| {
        let mut uploader = Uploader::open(pipeline.source.target(), &pipeline.common);
        while let Some((batch, consumer, mut filled)) = pipeline.to_send() {
            let (counters, place) = (pipeline.counters(), batch.place(Stage::Transfer));
            let waits = Span::new(counters, Stage::DeviceWait, batch.key);
            let asked = Instant::now();
            let epochs = pipeline.epochs();
            let entered = pipeline.window.enter(epochs, || pipeline.starved(batch));
            drop(waits);
            let Some(room) = entered else {
                discard(place, filled); // its epoch has ended, or given it up
                continue;
            };
            if room != Room::Free {
                pipeline.was_full(batch, asked);
            }
            if room == Room::LetIn {
                counters.kept(asked.elapsed());
            }
            uploader.aim(consumer, pipeline.window.most(epochs));
            let decoded = if filled.decodes() {
                let _decodes = Span::new(counters, Stage::Decode, batch.key);
                filled.decode(&mut uploader).map(|skips| pipeline.skipped(batch, skips))
            } else {
                Ok(())
            };
            let next = decoded.and_then(|()| {
                let _copies = Span::new(counters, Stage::Transfer, batch.key);
                filled.send(&pipeline.pool, &mut uploader)
            });
            pipeline.window.copied(uploader.in_use());
            counters.note_device();
            let taken = pipeline.pass(batch, next);
            if !taken {
                if let Err(error) = uploader.flush(place) {
                    log::warn!("burn-pinned: the flush after a batch that nobody took failed: {error}");
                }
                pipeline.common.look(true); // its epoch may have been the last
            }
        }
        uploader.close();
    });
}

impl<O> Pipeline<O> {
    /// Waits for a batch that may go to the device; returns it with the CubeCL stream of its consumer. Returns `None`
    /// when the pipeline is closed.
    pub(crate) fn to_send(&self) -> Option<(BatchId, StreamId, Box<dyn ToSend<O>>)> {
        let ahead = self.flow.ahead();
        let batch = self.wait_for(Step::Send, |run| run.take_to_send(ahead))?;
        self.crew.for_workers.notify_one(); // a worker that rests may go on, and wakes the next
        Some(batch)
    }

    /// Notes that the calling thread has dropped the iterator of an epoch. Memory of the device that it does not need any
    /// more is released.
    pub(crate) fn rest(&self) {
        let is_idle = self.epochs() == 0;
        self.common.rest(is_idle.then(|| self.window.most(1)));
    }

    /// Notes that a filled batch had to wait for room on the device from `since` until now.
    fn was_full(&self, batch: BatchId, since: Instant) {
        let full = (since, Instant::now());
        self.put(batch, full, |run, full| run.full.insert(batch.key.number, full));
    }

    /// Returns the longest time that a consumer of this copy has waited for its next batch. Returns `None` when the
    /// pipeline is closed, or when nobody waits for this batch any more.
    pub(crate) fn starved(&self, batch: BatchId) -> Option<Duration> {
        let state = self.crew.lock();
        let waits = !self.is_closed() && state.is_awaited(batch);
        waits.then(|| state.runs_of(self.branch()).map(Run::starved).max().unwrap_or_default())
    }
}

impl<O> Run<O> {
    /// Takes the next batch that may be sent. At most `ahead` batches ahead of the step are on the device or on their
    /// way there.
    fn take_to_send(&mut self, ahead: usize) -> Option<(BatchId, StreamId, Box<dyn ToSend<O>>)> {
        let (number, filled) =
            self.queues.to_send.first_entry().filter(|next| *next.key() < self.delivered + ahead)?.remove_entry();
        Some((self.batch(number), self.consumer, filled))
    }
}

#[cfg(test)]
pub(super) mod tests;
