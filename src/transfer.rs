//! The transfer stage: filled slots become tensors on the device, on threads and streams of their own.

use crate::{
    error::{Error, Place},
    pipeline::Pipeline,
    source::Target,
};
use burn::tensor::Device;

impl Target {
    /// Finds out what kind of device this is.
    pub(crate) fn of(device: Device) -> Self {
        // Burn's devices are type-erased, and which variants exist depends on features that this crate does not control: the name
        // is what remains. One that is not known here is treated as an accelerator, which is slower on a CPU but never wrong.
        let name = format!("{:?}", device.clone().without_autodiff());
        let host = ["Flex", "NdArray", "Cube(Cpu", "LibTorch(Cpu"].iter().any(|cpu| name.contains(cpu));
        Self { device, host }
    }
}

/// A transfer thread. It has a CubeCL stream of its own for as long as it lives, which is as long as the loader.
pub(crate) fn run<O>(pipeline: &Pipeline<O>) {
    let target = pipeline.source.target();
    while let Some((run, place, filled)) = pipeline.to_send() {
        let sent = pipeline.source.send(filled, &pipeline.pool);
        let sent = sent.and_then(|ready| settle(target, place).map(|()| ready));
        pipeline.ready(run, place.batch, sent);
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
