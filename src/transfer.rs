//! The transfer stage: filled slots become tensors on the device, on threads and streams of their own.

use crate::{
    error::{Error, Place},
    pipeline::{Pipeline, Sendable},
    source::Target,
};

/// A transfer thread. It has a CubeCL stream of its own for as long as it lives, which is as long as the loader.
pub(crate) fn run<O>(pipeline: &Pipeline<O>) {
    while let Some(sendable) = pipeline.to_send() {
        send(pipeline, sendable);
    }
}

/// Hands one batch to the device and makes it ready for the consumer.
pub(crate) fn send<O>(pipeline: &Pipeline<O>, Sendable { run, place, filled }: Sendable<O>) {
    let ready = pipeline.source.send(filled, &pipeline.pool);
    let ready = ready.and_then(|ready| settle(pipeline.source.target(), place).map(|()| ready));
    pipeline.ready(run, place.batch, ready);
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
