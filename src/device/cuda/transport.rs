//! The crate's own transport to a CUDA device.

use super::{context::ordinal, copy::CopyStream, state::TransferState};
use crate::{
    device::{
        destination::Destination,
        flat::{DeviceTensor, Failure, FlatTensor, Redo},
        target::Target,
        transport::{SMALL_COPY, Transport},
        window::InUse,
    },
    fault::BoxError,
    image_rows::LongFiles,
    memory::Slot,
    vocabulary::MemoryKind,
};
use burn::tensor::Device;

/// Opens the transport to a device for the calling thread, if it is a CUDA device.
///
/// # Errors
/// The reason in words.
pub(in crate::device) fn transport(
    device: &Device,
    state: &TransferState,
) -> Option<Result<Box<dyn Transport>, BoxError>> {
    let stream = CopyStream::new(ordinal(device)?, device, &state.blocks, &state.pending);
    Some(stream.map(|stream| Box::new(stream) as Box<dyn Transport>))
}

/// Copies on a CUDA stream of the crate, into memory that CubeCL allocated. CubeCL's own way queues sent bytes. While
/// CubeCL empties that queue, its device thread waits for the running copies, and so do the step's launches.
impl Transport for CopyStream {
    fn decode(
        &mut self,
        target: &Target,
        (slot, long): (&Slot, &LongFiles),
        parts: &[FlatTensor],
        destination: Destination,
        redo: Redo<'_>,
    ) -> Result<Vec<DeviceTensor>, Failure> {
        let engine = target.engine.as_ref();
        let engine = engine.ok_or_else(|| Failure::Device("the device was not opened for decoding".into()))?;
        self.decode(engine, (slot.as_slice(), long), parts, destination, redo)
    }

    fn start(
        &mut self,
        _: &Target,
        bytes: bytes::Bytes,
        _: MemoryKind,
        parts: &[FlatTensor],
        destination: Destination,
    ) -> Result<Vec<DeviceTensor>, BoxError> {
        self.start(&bytes, parts, destination)
    }

    fn settle(&mut self, _: &Target, bytes: usize) -> Result<(), BoxError> {
        Ok(self.wait(bytes < SMALL_COPY)?)
    }

    fn in_use(&mut self) -> Option<(InUse, usize)> {
        self.in_use()
    }
}
