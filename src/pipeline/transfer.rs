//! The transfer threads: they copy filled batches to the device.

use super::{pipeline::Pipeline, state::State};
use crate::{
    batch::{Batch, BatchState, Queue},
    device::{Room, Turn, Uploader},
    fault::discard,
    observe::Span,
    vocabulary::{Place, Stage},
};
use burn::tensor::StreamId;
use std::{sync::OnceLock, time::Instant};

/// The CubeCL stream that all transfer threads of the process use for their own work. There is only one, since CubeCL
/// keeps a pool of device memory for each stream.
static STREAM: OnceLock<StreamId> = OnceLock::new();

/// A transfer thread.
pub(super) fn run<O>(pipeline: &Pipeline<O>) {
    STREAM.get_or_init(StreamId::current).executes(|| {
        let source = &pipeline.source;
        let mut uploader =
            Uploader::open(source.target(), pipeline.counters(), || source.transport(&pipeline.transfers));
        while let Some((batch, consumer)) = pipeline.wait_for(Queue::Send, State::take_to_send) {
            let (counters, key) = (pipeline.counters(), batch.key);
            let place = Place::batch(Stage::Transfer, key);
            let waits = Span::new(counters, Stage::DeviceWait, key);
            let asked = Instant::now();
            let turn = Turn { epoch: key.iterator.0, number: key.number };
            let entered = pipeline.window.enter(turn, || pipeline.lock().epochs(), || pipeline.starved(key));
            drop(waits);
            let Some(room) = entered else {
                discard(place, batch); // its epoch has ended, or the pipeline is closed
                continue;
            };
            if room != Room::Free {
                pipeline.lock().was_full(key, asked, Instant::now());
            }
            if room == Room::LetIn {
                counters.note_transfer(|stats| stats.kept_wait += asked.elapsed());
            }
            uploader.copy_for(consumer, pipeline.window.most(pipeline.lock().epochs()));
            let batch = send(pipeline, batch, &mut uploader);
            pipeline.window.copied(uploader.in_use());
            counters.device_bytes(false);
            let taken = pipeline.pass(batch);
            if !taken {
                if let Err(error) = uploader.flush(place) {
                    log::warn!("burn-pinned: the flush after a batch that nobody took failed: {error}");
                }
                pipeline.transfers.find_free(true); // its epoch may have been the last
            }
        }
        uploader.close();
    });
}

/// Lets the device decode the images of a batch, if it does, and copies the batch there.
fn send<O>(pipeline: &Pipeline<O>, batch: Batch<O>, uploader: &mut Uploader) -> Batch<O> {
    let Batch { key, state, mut skips } = batch;
    let BatchState::Pinned(mut content) = state else { return Batch { key, state, skips } };
    let (source, counters) = (&pipeline.source, pipeline.counters());
    let sent = source.decode(&mut content, uploader).and_then(|left_out| {
        discard(Place::batch(Stage::Finish, key), skips.merge(left_out));
        let _copies = Span::new(counters, Stage::Transfer, key);
        source.send(content, &pipeline.pool, uploader)
    });
    Batch { key, state: pipeline.reported(sent), skips }
}
