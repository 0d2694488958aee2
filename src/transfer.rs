//! The transfer stage: filled slots become tensors on the device, on threads and streams of their own.

use crate::{
    error::{Error, Place},
    pipeline::Pipeline,
    source::Target,
};

/// A transfer thread. It has a CubeCL stream of its own for as long as it lives, which is as long as the loader.
pub(crate) fn run<O>(pipeline: &Pipeline<O>) {
    let target = pipeline.source.target();
    let bytes = pipeline.source.slot_bytes().unwrap_or(usize::MAX);
    while let Some((run, place, filled)) = pipeline.to_send() {
        let ready = pipeline.source.send(filled, &pipeline.pool);
        // Also after a failure: a part of the batch may be on its way.
        let settled = settle(target, bytes, place);
        pipeline.ready(run, place.batch, ready.and_then(|ready| settled.map(|()| ready)));
    }
    // CubeCL keeps a stream's memory pools for as long as the device lives: what can be freed of this one's is freed now.
    if !target.host {
        target.device.memory_cleanup();
    }
}

/// Below this size a copy is over sooner than a round trip to the device-runner thread.
const SMALL: usize = 1 << 20;

/// Waits until the copies of a batch of so many bytes are done, and lets CubeCL drop the bytes: each flush frees what was sent
/// before the flush ahead of it, so two free everything, and the slot is back before the batch is delivered. The first of
/// the two would wait for the copies on the device-runner thread, and with it the step's launches: `sync` first waits here,
/// but for small copies.
pub(crate) fn settle(target: &Target, bytes: usize, place: Place) -> Result<(), Error> {
    if target.host {
        return Ok(());
    }
    let device = &target.device;
    let done = || if bytes < SMALL { Ok(()) } else { device.sync() };
    let wait = || done().and_then(|()| device.flush()).and_then(|()| device.flush());
    wait().map_err(|error| Error::Device { place, message: error.to_string() })
}
