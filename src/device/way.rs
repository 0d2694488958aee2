//! Who copies to a device: Burn, or the crate itself.

#[cfg(feature = "cuda")]
use super::cuda_copy::CopyStream;
use super::{
    aim::Aim,
    flat::{Failure, Flat, Part, Redo, Uploaded},
    target::Target,
};
use crate::{
    fault::BoxError,
    memory::{LongFiles, Slot},
    vocabulary::MemoryKind,
};
use burn::tensor::Device;
#[cfg(test)]
use std::time::Instant;

/// Who copies to the device.
pub(super) enum Way {
    /// Burn, on the calling thread's CubeCL stream.
    Burn,
    /// The crate itself, on a CUDA stream of its own, into memory that CubeCL allocated. CubeCL keeps sent bytes in a
    /// queue. While CubeCL empties the queue, its device thread waits for the copies under way, and so do the step's
    /// launches.
    #[cfg(feature = "cuda")]
    Direct(Box<CopyStream>),
    /// A device that fails.
    #[cfg(test)]
    Broken(Breaks),
}

/// Where a broken device fails.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Breaks {
    /// With an error, once this many tensors are made.
    Upload {
        after: usize,
    },
    /// With a panic, once this many tensors are made.
    Panic {
        after: usize,
    },
    /// As images are decoded, with an error or with a panic.
    Decode,
    PanicInDecode,
    /// In the wait for images: what the device was given may still be read.
    LostInDecode,
    /// In the wait for the copies.
    Settle,
    /// In the wait for the copies. Their end is never known, so what they read is kept for ever.
    Lost,
    /// Nowhere. But the device uses what it was sent up to some time, or for ever.
    Keeps {
        until: Option<Instant>,
    },
}

impl Way {
    /// Makes images.
    pub(super) fn decode(
        &mut self,
        target: &Target,
        (slot, long): (&Slot, &LongFiles),
        parts: &[Part],
        aim: Aim,
        redo: Redo<'_>,
    ) -> Result<Vec<Uploaded>, Failure> {
        let _ = (target, slot, long, parts, aim, redo);
        match self {
            #[cfg(feature = "cuda")]
            Self::Direct(stream) => {
                let engine = target.engine.as_ref();
                let engine = engine.ok_or_else(|| Failure::Device("the device was not opened for decoding".into()))?;
                stream.decode(engine, (slot.as_slice(), long), parts, aim, redo)
            }
            #[cfg(test)]
            Self::Broken(Breaks::Decode) => Err(Failure::Device("the engines failed".into())),
            #[cfg(test)]
            Self::Broken(Breaks::LostInDecode) => Err(Failure::Lost("the engines did not end".into())),
            #[cfg(test)]
            Self::Broken(Breaks::PanicInDecode) => panic!("the engines are gone"),
            #[cfg(test)]
            Self::Broken(_) => super::fake_decode::decode((slot, long), parts, target, redo),
            _ => Err(Failure::Device("the copies of Burn make no images".into())),
        }
    }

    /// Starts to copy.
    pub(super) fn start(
        &mut self,
        bytes: bytes::Bytes,
        kind: MemoryKind,
        parts: &[Part],
        device: &Device,
        aim: Aim,
    ) -> Result<Vec<Uploaded>, BoxError> {
        let tensors: Vec<Flat> = match self {
            Self::Burn => parts.iter().map(|part| Flat::of(&bytes, kind, part, device)).collect(),
            #[cfg(feature = "cuda")]
            Self::Direct(stream) => return stream.start(&bytes, parts, aim),
            #[cfg(test)]
            Self::Broken(breaks) => {
                let mut tensors = Vec::new();
                for (made, part) in parts.iter().enumerate() {
                    match *breaks {
                        Breaks::Upload { after } if after == made => return Err("no room on the device".into()),
                        Breaks::Panic { after } if after == made => panic!("the device is gone"),
                        Breaks::Lost => std::mem::forget(bytes.clone()),
                        _ => {}
                    }
                    tensors.push(Flat::of(&bytes, kind, part, device));
                }
                tensors
            }
        };
        let _ = aim;
        let uploaded = |(tensor, part): (Flat, &Part)| Uploaded::Tensor(tensor.reshaped(part, device));
        Ok(tensors.into_iter().zip(parts).map(uploaded).collect())
    }

    /// Waits until the copies of a batch of `bytes` bytes are done and its slot is free again.
    pub(super) fn settle(&mut self, target: &Target, bytes: usize) -> Result<(), BoxError> {
        match self {
            Self::Burn if target.host => Ok(()),
            // Each flush frees what was sent before the previous flush, so two flushes free everything. The first
            // flush would wait for the copies on the device-runner thread. So `sync` waits for them here first. It is
            // left out for copies that are over sooner than its round trip.
            Self::Burn => {
                if bytes >= SMALL {
                    target.device.sync()?;
                }
                target.device.flush()?;
                Ok(target.device.flush()?)
            }
            #[cfg(feature = "cuda")]
            Self::Direct(stream) => Ok(stream.wait(bytes < SMALL)?),
            #[cfg(test)]
            Self::Broken(Breaks::Settle | Breaks::Lost) => Err("the copy did not end".into()),
            #[cfg(test)]
            Self::Broken(_) => Self::Burn.settle(target, bytes),
        }
    }
}

/// Copies of fewer bytes are over in about ten microseconds.
const SMALL: usize = 1 << 20;
