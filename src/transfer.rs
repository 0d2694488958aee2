//! The transfer stage: filled slots become tensors on the device, on threads and a stream of their own.

use crate::{
    activity::{Activity, BatchKey},
    error::{Error, Place},
    panics::discard,
    pipeline::Pipeline,
    target::Target,
    upload::Uploader,
    watch::during,
};
use burn::tensor::StreamId;
use std::{sync::OnceLock, time::Instant};

/// The CubeCL stream that all transfer threads of the process allocate on. One, since CubeCL keeps a pool of device memory for
/// each stream, as large as the most that was ever alive on it: three pools held 370 MB where one holds 150.
static STREAM: OnceLock<StreamId> = OnceLock::new();

/// A transfer thread.
pub(crate) fn run<O>(pipeline: &Pipeline<O>) {
    STREAM.get_or_init(StreamId::current).executes(|| {
        let target = pipeline.source.target();
        let bytes = pipeline.source.slot_bytes().unwrap_or(usize::MAX);
        let mut uploader = Uploader::to(target);
        while let Some((run, place, filled)) = pipeline.to_send() {
            let (counters, batch) = (pipeline.counters(), BatchKey { epoch: place.epoch, number: place.batch });
            let waits = counters.span(Activity::DeviceWait, batch);
            let asked = Instant::now();
            let entered = pipeline.device.enter(pipeline.epochs(), || pipeline.starved(run, place.batch));
            drop(waits);
            let Some(let_in) = entered else {
                discard(filled); // its epoch has ended, or given it up
                continue;
            };
            if let_in {
                counters.kept(asked.elapsed());
            }
            let copies = counters.span(Activity::Transfer, batch);
            let ready = pipeline.source.send(filled, &pipeline.pool, &mut uploader);
            // Also after a failure: a part of the batch may be on its way.
            let settled = settle(&mut uploader, target, bytes, place);
            drop(copies);
            pipeline.device.copied(uploader.in_use());
            counters.device_bytes(); // for their peak
            let taken = pipeline.ready(run, place.batch, ready.and_then(|ready| settled.map(|()| ready)));
            // Burn's fusion keeps tensors that are dropped on their own thread until more work comes there.
            if !taken && let Err(error) = during(place, || target.device.flush()) {
                log::warn!("burn-pinned: the flush after a batch that nobody took: {error}");
            }
        }
        // CubeCL keeps a stream's memory pools for as long as the device lives: what can be freed of this one's is freed now.
        if !target.host {
            target.device.memory_cleanup();
        }
    });
}

/// Waits until the copies of a batch are done and its slot is home.
pub(crate) fn settle(uploader: &mut Uploader, target: &Target, bytes: usize, place: Place) -> Result<(), Error> {
    let settled = during(place, || uploader.settle(target, bytes));
    settled.map_err(|error| Error::Device { place, message: error.to_string() })
}

#[cfg(test)]
mod tests;
