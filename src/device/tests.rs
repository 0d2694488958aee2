//! A transport that fails, hangs and decodes, for a CPU backend that is treated as an accelerator.

use super::{
    destination::Destination,
    flat::{DeviceTensor, Failure, FlatTensor, Redo, tensor_of},
    target::Target,
    transport::{Burn, Transport},
    window::{InUse, MemoryUse},
};
use crate::{
    fault::BoxError,
    image_rows::{ImageRow, LongFiles},
    memory::Slot,
    sync::locks::{Condvar, Mutex},
    vocabulary::MemoryKind,
};
use burn::tensor::Device;
use std::{mem, sync::Arc, time::Instant};

/// Where a device fails.
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
    /// While images are decoded, with an error or with a panic.
    Decode,
    PanicInDecode,
    /// In the wait for images. The device may still read the bytes that it was given.
    LostInDecode,
    /// In the wait for the copies.
    Settle,
    /// In the wait for the copies. Their end is never known, so the bytes that they read are kept for ever.
    Lost,
    /// Nowhere, but the device uses the batches that it was sent for some time, or for ever.
    Keeps {
        until: Option<Instant>,
    },
}

/// A call of a transfer thread to its device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum DeviceCall {
    Open,
    Upload,
    Flush,
    Close,
}

/// Makes a device hang.
#[derive(Debug, Default)]
pub(crate) struct Hang {
    at: Mutex<Option<DeviceCall>>,
    changed: Condvar,
}

impl Hang {
    pub(crate) fn at(call: DeviceCall) -> Arc<Self> {
        Arc::new(Self { at: Mutex::new(Some(call)), ..Self::default() })
    }

    pub(crate) fn end(&self) {
        *self.at.lock() = None;
        self.changed.notify_all();
    }

    fn reached(&self, call: DeviceCall) {
        let mut at = self.at.lock();
        while *at == Some(call) {
            at = self.changed.wait(at);
        }
    }
}

/// A CPU backend, treated as an accelerator.
pub(crate) fn accelerator() -> Target {
    Target { host: false, ..Target::of(Device::flex()) }
}

/// Burn's copies to a device that fails or hangs.
pub(crate) struct Fake<B> {
    /// Says where the device fails with the batch that the calling thread sends.
    breaks: B,
    hang: Arc<Hang>,
}

impl<B: Fn() -> Option<Breaks>> Fake<B> {
    pub(crate) fn open(breaks: B, hang: &Arc<Hang>) -> Self {
        hang.reached(DeviceCall::Open);
        Self { breaks, hang: Arc::clone(hang) }
    }
}

impl<B: Fn() -> Option<Breaks>> Transport for Fake<B> {
    fn decode(
        &mut self,
        target: &Target,
        files: (&Slot, &LongFiles),
        parts: &[FlatTensor],
        _: Destination,
        redo: Redo<'_>,
    ) -> Result<Vec<DeviceTensor>, Failure> {
        match (self.breaks)() {
            Some(Breaks::Decode) => Err(Failure::Device("the engines failed".into())),
            Some(Breaks::LostInDecode) => Err(Failure::Lost("the engines did not end".into())),
            Some(Breaks::PanicInDecode) => panic!("the engines are gone"),
            _ => parts.iter().map(|part| images(files, part, target, redo)).collect(),
        }
    }

    fn start(
        &mut self,
        target: &Target,
        bytes: bytes::Bytes,
        kind: MemoryKind,
        parts: &[FlatTensor],
        destination: Destination,
    ) -> Result<Vec<DeviceTensor>, BoxError> {
        self.hang.reached(DeviceCall::Upload);
        let breaks = (self.breaks)();
        if breaks == Some(Breaks::Lost) {
            mem::forget(bytes.clone());
        }
        let made = match breaks {
            Some(Breaks::Upload { after } | Breaks::Panic { after }) => after.min(parts.len()),
            _ => parts.len(),
        };
        let uploaded = Burn.start(target, bytes, kind, &parts[..made], destination)?;
        match breaks {
            _ if made == parts.len() => Ok(uploaded),
            Some(Breaks::Panic { .. }) => panic!("the device is gone"),
            _ => Err("no room on the device".into()),
        }
    }

    fn settle(&mut self, target: &Target, bytes: usize) -> Result<(), BoxError> {
        match (self.breaks)() {
            Some(Breaks::Settle | Breaks::Lost) => Err("the copy did not end".into()),
            _ => Burn.settle(target, bytes),
        }
    }

    fn flush(&mut self, target: &Target) -> Result<(), BoxError> {
        self.hang.reached(DeviceCall::Flush);
        Burn.flush(target)
    }

    fn in_use(&mut self) -> Option<(InUse, usize)> {
        let Some(Breaks::Keeps { until }) = (self.breaks)() else { return None };
        let uses = move || match until {
            None => MemoryUse::Tensor,
            Some(until) if Instant::now() < until => MemoryUse::Work,
            Some(_) => MemoryUse::Nothing,
        };
        Some((Box::new(uses), 80))
    }
}

impl<B> Drop for Fake<B> {
    fn drop(&mut self) {
        self.hang.reached(DeviceCall::Close);
    }
}

/// Makes the tensor of rows of images on the host, by `redo`, which is for files that a device refuses.
fn images(
    (slot, long): (&Slot, &LongFiles),
    part: &FlatTensor,
    target: &Target,
    redo: Redo<'_>,
) -> Result<DeviceTensor, Failure> {
    let values = part.images.as_ref().ok_or_else(|| Failure::Device("no images".into()))?;
    let rows = &slot.as_slice()[part.range.clone()];
    let mut out = Vec::with_capacity(part.bytes());
    for (nth, row) in rows.chunks_exact(rows.len() / part.shape[0]).enumerate() {
        let result = [part.shape[3], part.shape[2]].map(|side| side as u32);
        let (head, bytes) = ImageRow::open(row, long, result).map_err(|error| Failure::Device(error.into()))?;
        let pixels = match head.kind {
            ImageRow::PIXELS => bytes.to_vec(),
            _ => redo(nth, &head, bytes).map_err(Failure::Sample)?,
        };
        let plane = pixels.len() / 3;
        for (at, byte) in pixels.into_iter().enumerate() {
            let (channel, byte) = (at / plane, usize::from(byte));
            let size = values.len() / (3 * 256);
            out.extend_from_slice(&values[(256 * channel + byte) * size..][..size]);
        }
    }
    let whole = FlatTensor { range: 0..out.len(), images: None, ..part.clone() };
    Ok(tensor_of(&bytes::Bytes::from(out), MemoryKind::Pageable, &whole, &target.device).into())
}
