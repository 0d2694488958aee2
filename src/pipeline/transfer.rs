//! The transfer threads: they copy filled batches to the device.

use super::{pipeline::Pipeline, state::State};
use crate::{
    batch::Queue,
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
        let mut uploader = Uploader::open(source.target(), || source.transport(&pipeline.common));
        while let Some((batch, consumer, mut filled)) = pipeline.wait_for(Queue::Send, State::take_to_send) {
            let (counters, place) = (pipeline.counters(), Place::batch(Stage::Transfer, batch));
            let waits = Span::new(counters, Stage::DeviceWait, batch);
            let asked = Instant::now();
            let epochs = pipeline.lock().epochs();
            let turn = Turn { epoch: batch.run.0, number: batch.number };
            let entered = pipeline.window.enter(epochs, turn, || pipeline.starved(batch));
            drop(waits);
            let Some(room) = entered else {
                discard(place, filled); // its epoch has ended, or the pipeline is closed
                continue;
            };
            if room != Room::Free {
                pipeline.lock().was_full(batch, asked, Instant::now());
            }
            if room == Room::LetIn {
                counters.kept(asked.elapsed());
            }
            uploader.aim(consumer, pipeline.window.most(epochs));
            let decoded = if filled.decodes() {
                let _decodes = Span::new(counters, Stage::Decode, batch);
                filled.decode(&mut uploader).map(|skips| pipeline.skipped(batch, skips))
            } else {
                Ok(())
            };
            let sent = decoded.and_then(|()| {
                let _copies = Span::new(counters, Stage::Transfer, batch);
                filled.send(&pipeline.pool, &mut uploader)
            });
            pipeline.window.copied(uploader.in_use());
            counters.device_bytes(false);
            let taken = pipeline.ready(batch, sent);
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
