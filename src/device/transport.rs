//! Ways to copy to a device: by Burn, or by the crate itself.

#[cfg(feature = "cuda")]
use super::cuda::copy::CopyStream;
use super::{
    aim::Aim,
    common::Common,
    flat::{DeviceTensor, Failure, FlatTensor, Redo, tensor_of},
    target::Target,
    window::InUse,
};
use crate::{fault::BoxError, memory::Slot, picture_row::LongFiles, vocabulary::MemoryKind};

/// A way to copy batches to a device. Each transfer thread has its own.
pub(crate) trait Transport {
    /// Makes the images of a slot on the device.
    ///
    /// # Errors
    /// If the device fails, or if neither the device nor `redo` can decode a file.
    fn decode(
        &mut self,
        target: &Target,
        files: (&Slot, &LongFiles),
        parts: &[FlatTensor],
        aim: Aim,
        redo: Redo<'_>,
    ) -> Result<Vec<DeviceTensor>, Failure> {
        let _ = (target, files, parts, aim, redo);
        Err(Failure::Device("the copies of Burn make no images".into()))
    }

    /// Starts to copy parts of some bytes.
    ///
    /// # Errors
    /// If the device has no memory for them or refuses a copy. Copies that were started go on.
    fn start(
        &mut self,
        target: &Target,
        bytes: bytes::Bytes,
        kind: MemoryKind,
        parts: &[FlatTensor],
        aim: Aim,
    ) -> Result<Vec<DeviceTensor>, BoxError>;

    /// Waits until the copies of a batch of `bytes` bytes are done and its slot is free again.
    ///
    /// # Errors
    /// The device's error. The device may still read the slot then.
    fn settle(&mut self, target: &Target, bytes: usize) -> Result<(), BoxError>;

    /// Releases the tensors that this thread has dropped.
    ///
    /// # Errors
    /// The device's error.
    fn flush(&mut self, target: &Target) -> Result<(), BoxError> {
        Ok(target.device.flush()?)
    }

    /// Returns a function that tells whether the device still uses the memory of the last batch, and the bytes of that
    /// batch. Returns `None` where it cannot be known.
    fn in_use(&mut self) -> Option<(InUse, usize)> {
        None
    }
}

impl Target {
    /// Opens the fastest way to the device, for the calling thread.
    ///
    /// # Errors
    /// The reason in words.
    pub(crate) fn transport(&self, common: &Common) -> Result<Box<dyn Transport>, BoxError> {
        #[cfg(feature = "cuda")]
        if let Some(ordinal) = super::cuda::context::ordinal(&self.device) {
            return Ok(Box::new(CopyStream::new(ordinal, &self.device, &common.blocks, &common.gathered)?));
        }
        let Common { .. } = common;
        Ok(Box::new(Burn))
    }
}

/// Burn, on the calling thread's CubeCL stream, for a device of any kind.
pub(super) struct Burn;

impl Transport for Burn {
    fn start(
        &mut self,
        Target { device, .. }: &Target,
        bytes: bytes::Bytes,
        kind: MemoryKind,
        parts: &[FlatTensor],
        _: Aim,
    ) -> Result<Vec<DeviceTensor>, BoxError> {
        Ok(parts.iter().map(|part| DeviceTensor::Tensor(tensor_of(&bytes, kind, part, device))).collect())
    }

    fn settle(&mut self, target: &Target, bytes: usize) -> Result<(), BoxError> {
        if target.host {
            return Ok(());
        }
        // Each flush frees what was sent before the previous flush, so two flushes free everything. The first flush
        // would wait for the copies on the device-runner thread. So `sync` waits for them here first. Small copies need
        // no `sync`: they are over sooner than its round trip takes.
        if bytes >= SMALL_COPY {
            target.device.sync()?;
        }
        target.device.flush()?;
        Ok(target.device.flush()?)
    }
}

/// The crate itself, on a CUDA stream of its own, into memory that CubeCL allocated. CubeCL keeps sent bytes in a queue.
/// While CubeCL empties the queue, its device thread waits for the copies under way, and so do the step's launches.
#[cfg(feature = "cuda")]
impl Transport for CopyStream {
    fn decode(
        &mut self,
        target: &Target,
        (slot, long): (&Slot, &LongFiles),
        parts: &[FlatTensor],
        aim: Aim,
        redo: Redo<'_>,
    ) -> Result<Vec<DeviceTensor>, Failure> {
        let engine = target.engine.as_ref();
        let engine = engine.ok_or_else(|| Failure::Device("the device was not opened for decoding".into()))?;
        self.decode(engine, (slot.as_slice(), long), parts, aim, redo)
    }

    fn start(
        &mut self,
        _: &Target,
        bytes: bytes::Bytes,
        _: MemoryKind,
        parts: &[FlatTensor],
        aim: Aim,
    ) -> Result<Vec<DeviceTensor>, BoxError> {
        self.start(&bytes, parts, aim)
    }

    fn settle(&mut self, _: &Target, bytes: usize) -> Result<(), BoxError> {
        Ok(self.wait(bytes < SMALL_COPY)?)
    }

    fn in_use(&mut self) -> Option<(InUse, usize)> {
        self.in_use()
    }
}

/// Copies of fewer bytes are over sooner than a thread goes to sleep and wakes up.
const SMALL_COPY: usize = 1 << 20;
