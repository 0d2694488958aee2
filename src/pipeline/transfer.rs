//! The transfer stage: filled slots become tensors on the device, on threads and a stream of their own.

use super::shared::Pipeline;
use crate::{
    device::Uploader,
    fault::discard,
    observe::Span,
    vocabulary::{BatchKey, Stage},
};
use burn::tensor::StreamId;
use std::{sync::OnceLock, time::Instant};

/// The CubeCL stream that all transfer threads of the process allocate on. There is only one, since CubeCL keeps a pool
/// of device memory for each stream, as large as the most that was ever alive on it. Three pools held 370 MB where one
/// holds 150 MB.
static STREAM: OnceLock<StreamId> = OnceLock::new();

/// A transfer thread.
pub(crate) fn run<O>(pipeline: &Pipeline<O>) {
    STREAM.get_or_init(StreamId::current).executes(|| {
        let mut uploader = Uploader::open(pipeline.source.target());
        while let Some((run, place, filled)) = pipeline.to_send() {
            let (counters, batch) = (pipeline.counters(), BatchKey { epoch: place.epoch, number: place.batch });
            let waits = Span::new(counters, Stage::DeviceWait, batch);
            let asked = Instant::now();
            let entered = pipeline.device.enter(pipeline.epochs(), || pipeline.starved(run, place.batch));
            drop(waits);
            let Some(let_in) = entered else {
                discard(place, filled); // its epoch has ended, or given it up
                continue;
            };
            if let_in {
                counters.kept(asked.elapsed());
            }
            let copies = Span::new(counters, Stage::Transfer, batch);
            let ready = filled.send(&pipeline.pool, &mut uploader);
            drop(copies);
            pipeline.device.copied(uploader.in_use());
            counters.device_bytes(); // for their peak
            let taken = pipeline.ready(run, place.batch, ready);
            if !taken && let Err(error) = uploader.flush(place) {
                log::warn!("burn-pinned: the flush after a batch that nobody took: {error}");
            }
        }
        uploader.close();
    });
}

#[cfg(test)]
mod tests;
