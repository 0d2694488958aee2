//! The transfer stage: filled slots become tensors on the device, on threads and streams of their own.

use crate::{
    error::{Error, Place},
    pipeline::Pipeline,
    source::Target,
};

/// A transfer thread. It has a CubeCL stream of its own for as long as it lives, which is as long as the loader.
pub(crate) fn run<O>(pipeline: &Pipeline<O>) {
    while let Some((run, place, filled)) = pipeline.to_send() {
        let ready = pipeline.source.send(filled, &pipeline.pool);
        // Also after a failure: a part of the batch may be on its way.
        let settled = settle(pipeline.source.target(), place);
        pipeline.sent(run, place.batch, ready.and_then(|ready| settled.map(|()| ready)));
    }
}

/// Waits on this thread until the copies are done, and lets CubeCL drop the bytes: each flush frees what was sent before the
/// flush ahead of it, so two free everything, and the slot is back before the batch is delivered.
pub(crate) fn settle(target: &Target, place: Place) -> Result<(), Error> {
    if target.host {
        return Ok(());
    }
    let device = &target.device;
    let wait = || device.sync().and_then(|()| device.flush()).and_then(|()| device.flush());
    wait().map_err(|error| Error::Device { place, message: error.to_string() })
}
