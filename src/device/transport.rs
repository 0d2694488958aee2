//! Transports to a device: Burn's, or the crate's own.

use super::{
    cuda::{self, TransferState},
    destination::Destination,
    flat::{DeviceTensor, Failure, FlatTensor, Redo, tensor_of},
    target::Target,
    window::InUse,
};
use crate::{fault::BoxError, image_rows::LongFiles, memory::Slot, vocabulary::MemoryKind};

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
        destination: Destination,
        redo: Redo<'_>,
    ) -> Result<Vec<DeviceTensor>, Failure> {
        let _ = (target, files, parts, destination, redo);
        Err(Failure::Device("the copies of Burn make no images".into()))
    }

    /// Starts to copy parts of some bytes.
    ///
    /// # Errors
    /// If the device has no memory for them or refuses a copy. Copies that were started continue.
    fn start(
        &mut self,
        target: &Target,
        bytes: bytes::Bytes,
        kind: MemoryKind,
        parts: &[FlatTensor],
        destination: Destination,
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
    /// Opens the fastest transport to the device, for the calling thread.
    ///
    /// # Errors
    /// The reason in words.
    pub(crate) fn transport(&self, state: &TransferState) -> Result<Box<dyn Transport>, BoxError> {
        let own = cuda::transport(&self.device, state);
        own.unwrap_or_else(|| Ok(Box::new(Burn)))
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
        _: Destination,
    ) -> Result<Vec<DeviceTensor>, BoxError> {
        Ok(parts.iter().map(|part| DeviceTensor::from(tensor_of(&bytes, kind, part, device))).collect())
    }

    fn settle(&mut self, target: &Target, bytes: usize) -> Result<(), BoxError> {
        if target.host {
            return Ok(());
        }
        // Each flush frees what was sent before the previous flush, so two flushes free everything. The first flush
        // would wait for the copies on the device's thread, so `sync` waits for them here first. Small copies need no
        // `sync`: they finish sooner than its round trip.
        if bytes >= SMALL_COPY {
            target.device.sync()?;
        }
        target.device.flush()?;
        Ok(target.device.flush()?)
    }
}

/// Copies of fewer bytes finish sooner than a thread goes to sleep and wakes up.
pub(super) const SMALL_COPY: usize = 1 << 20;
