//! How bytes of host memory become tensors on the device. All that a loader's threads ask of a device goes through
//! [`Uploader`], where the watchdog sees it and a panic becomes an error.

use super::{
    call::DeviceCall,
    flat::{Flat, Part, Redo, Uploaded},
    target::Target,
    window::InUse,
};
#[cfg(feature = "cuda")]
use super::{cuda_block::Blocks, cuda_copy::CopyStream, decode::Failure};
use crate::{
    fault::{BoxError, Error, guard},
    memory::{LongFiles, Pool, Slot},
    vocabulary::{BatchKey, MemoryKind, Place, Stage},
};
use burn::tensor::{Device, StreamId};
use parking_lot::Mutex;
#[cfg(feature = "cuda")]
use std::sync::Arc;
#[cfg(test)]
use std::time::Instant;

/// What the transfer threads of a pipeline share.
#[derive(Debug, Default, Clone)]
pub(crate) struct Common {
    #[cfg(feature = "cuda")]
    blocks: Arc<Blocks>,
}

impl Common {
    /// Finds out which memory of the device is free by now. Does not wait.
    pub(crate) fn look(&self) {
        #[cfg(feature = "cuda")]
        self.blocks.look();
    }
}

/// A transfer thread's way to its device.
pub(crate) struct Uploader {
    way: Way,
    target: Target,
    aim: Aim,
}

/// For whom batches are copied.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only the crate's own copies are for a thread"))]
struct Aim {
    /// The CubeCL stream of the thread that takes the batches.
    consumer: StreamId,
    /// The most batches that memory of the device is kept for.
    most: usize,
}

/// Who copies to the device.
enum Way {
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
    /// In the wait for the copies.
    Settle,
    /// In the wait for the copies. Their end is never known, so what they read is kept for ever.
    Lost,
    /// Nowhere. But the device uses what it was sent up to some time, or for ever.
    Keeps {
        until: Option<Instant>,
    },
}

impl Uploader {
    /// Burn's own way, for a device of any kind.
    pub(crate) fn burn(target: &Target) -> Self {
        Self { way: Way::Burn, target: target.clone(), aim: Aim { consumer: StreamId::current(), most: 0 } }
    }

    /// The fastest way to a device.
    pub(crate) fn open(target: &Target, common: &Common) -> Self {
        THREADS.enter(&target.device);
        let uploader = Self::burn(target);
        let way = uploader.call(DeviceCall::Open, Place::batch(Stage::Transfer, BatchKey::NONE), |_| {
            #[cfg(feature = "cuda")]
            if let Some(ordinal) = crate::device::cuda_context::ordinal(&target.device) {
                return CopyStream::new(ordinal, &target.device, &common.blocks).map(Box::new).map(Way::Direct);
            }
            let Common { .. } = common;
            Ok(Way::Burn)
        });
        match way {
            Ok(way) => Self { way, ..uploader },
            Err(problem) => {
                log::warn!("burn-pinned uses the copies of Burn, which are slower: {problem}");
                uploader
            }
        }
    }

    /// Copies for the thread with this CubeCL stream from now on. Keeps memory of the device for at most `most` batches
    /// that nothing uses.
    pub(crate) fn aim(&mut self, consumer: StreamId, most: usize) {
        self.aim = Aim { consumer, most };
    }

    #[cfg(test)]
    pub(crate) fn broken(target: &Target, breaks: Breaks) -> Self {
        Self { way: Way::Broken(breaks), ..Self::burn(target) }
    }

    /// Runs a call of the device.
    fn call<T>(
        &self,
        call: DeviceCall,
        place: Place,
        code: impl FnOnce(&Device) -> Result<T, BoxError>,
    ) -> Result<T, Error> {
        Self::watched(&self.target, call, place, code)
    }

    fn watched<T>(
        target: &Target,
        call: DeviceCall,
        place: Place,
        code: impl FnOnce(&Device) -> Result<T, BoxError>,
    ) -> Result<T, Error> {
        guard(place, || {
            #[cfg(test)]
            if let Some(hang) = &target.hang {
                hang.reached(call);
            }
            let _ = call;
            code(&target.device)
        })
    }

    #[cfg_attr(not(feature = "vision"), expect(dead_code, reason = "without images there is nothing to decode"))]
    /// Makes the images of a slot on the device. Blocks until they are there.
    ///
    /// # Errors
    /// If the device fails or has no memory, or a file can be decoded neither there nor by `redo`.
    pub(crate) fn decode(
        &mut self,
        slot: &Slot,
        parts: &[Part],
        long: &LongFiles,
        place: Place,
        redo: Redo<'_>,
    ) -> Result<Vec<Uploaded>, Error> {
        let Self { way, target, aim } = self;
        let mut refused = None;
        let decoded = Self::watched(target, DeviceCall::Decode, place, |_| {
            way.decode(target, (slot, long), parts, *aim, redo, &mut refused)
        });
        let Err(error) = decoded else { return decoded };
        // Blocks were taken, and are given back once nothing is written to them.
        guard(place, || way.settle(target, 0))?;
        Err(refused.unwrap_or(error))
    }

    /// Copies the parts of a slot to the device. Blocks until they are there and the slot is free. Returns a tensor for
    /// each part, of the kind that its dtype calls for.
    ///
    /// # Errors
    /// If the device has no memory for it or refuses a copy. [`Error::Device`] if the copies did not end well. Then the
    /// device may still read the slot's memory, so this memory may be kept for ever, and another batch gets its permit.
    pub(crate) fn upload(
        &mut self,
        slot: Slot,
        parts: &[Part],
        pool: &Pool,
        place: Place,
    ) -> Result<Vec<Uploaded>, Error> {
        let (permit, kind) = (slot.permit(), slot.kind());
        let bytes = slot.freeze();
        let total = parts.iter().map(|part| part.range.len()).sum();
        let Self { way, target, aim } = self;
        let tensors =
            Self::watched(target, DeviceCall::Upload, place, |device| way.start(bytes, kind, parts, device, *aim));
        // Also after a failure: a part of the batch may be on its way.
        let settled = guard(place, || way.settle(target, total));
        let settled = settled.map_err(|error| match error {
            Error::Failed { place, source } => Error::Device { place, message: source.to_string() },
            other => other,
        });
        let Err(error) = settled else { return tensors };
        drop(tensors);
        permit.into_iter().for_each(|permit| pool.replace(permit)); // does nothing if the slot has come back by now
        Err(error)
    }

    /// Releases what was dropped on this thread. Burn's fusion keeps it until more work comes here.
    pub(crate) fn flush(&mut self, place: Place) -> Result<(), Error> {
        self.call(DeviceCall::Flush, place, |device| Ok(device.flush()?))
    }

    /// Returns what tells whether the device still uses the memory of the batch that was uploaded last, and the bytes
    /// of that batch. Returns `None` where that cannot be known.
    pub(crate) fn in_use(&mut self) -> Option<(InUse, usize)> {
        match &mut self.way {
            Way::Burn => None,
            #[cfg(feature = "cuda")]
            Way::Direct(stream) => stream.in_use(),
            #[cfg(test)]
            Way::Broken(Breaks::Keeps { until }) => {
                let until = *until;
                Some((Box::new(move || until.is_none_or(|until| Instant::now() < until)), 80))
            }
            #[cfg(test)]
            Way::Broken(_) => None,
        }
    }

    /// Ends the use of the device by this thread.
    pub(crate) fn close(self) {
        let Self { way, target, .. } = self;
        let place = Place::batch(Stage::Transfer, BatchKey::NONE);
        let closed = Self::watched(&target, DeviceCall::Close, place, |device| {
            {
                let _ends_here = way; // a copy stream lets go of its memory, before the pools that it is of are cleaned up
            }
            // CubeCL keeps the memory pools of its streams. Freeing what can be freed stalls everybody on the device,
            // so only the last loader on it does that.
            if THREADS.leave(device) && !target.host {
                device.memory_cleanup();
            }
            Ok(())
        });
        if let Err(error) = closed {
            log::warn!("burn-pinned: an error at the end of a transfer thread: {error}");
        }
    }
}

/// How many transfer threads each device has.
struct ThreadCounts(Mutex<Vec<(Device, usize)>>);

/// The transfer threads of the process.
static THREADS: ThreadCounts = ThreadCounts::none();

impl ThreadCounts {
    const fn none() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Counts a thread in.
    fn enter(&self, device: &Device) {
        let mut threads = self.0.lock();
        match threads.iter_mut().find(|(other, _)| other == device) {
            Some((_, count)) => *count += 1,
            None => threads.push((device.clone(), 1)),
        }
    }

    /// Counts a thread out; returns whether it was the last one of its device.
    fn leave(&self, device: &Device) -> bool {
        let mut threads = self.0.lock();
        let Some(at) = threads.iter().position(|(other, _)| other == device) else { return false };
        threads[at].1 -= 1;
        let last = threads[at].1 == 0;
        if last {
            threads.swap_remove(at);
        }
        last
    }
}

impl Way {
    /// Makes images. Notes the error of a file that cannot be decoded.
    fn decode(
        &mut self,
        target: &Target,
        (slot, long): (&Slot, &LongFiles),
        parts: &[Part],
        aim: Aim,
        redo: Redo<'_>,
        refused: &mut Option<Error>,
    ) -> Result<Vec<Uploaded>, BoxError> {
        let _ = (target, slot, long, parts, aim, redo, &refused);
        match self {
            #[cfg(feature = "cuda")]
            Self::Direct(stream) => {
                let engine = target.engine.as_ref().ok_or("the device was not opened for decoding")?;
                let made = stream.decode(engine, (slot.as_slice(), long), parts, aim.consumer, aim.most, redo);
                made.map_err(|failure| match failure {
                    Failure::Device(error) => error,
                    Failure::Sample(error) => {
                        *refused = Some(error);
                        "a file cannot be decoded".into()
                    }
                })
            }
            #[cfg(test)]
            Self::Broken(Breaks::Decode) => Err("the engines failed".into()),
            #[cfg(test)]
            Self::Broken(Breaks::PanicInDecode) => panic!("the engines are gone"),
            #[cfg(test)]
            Self::Broken(_) => super::fake_decode::decode((slot, long), parts, target, redo, refused),
            _ => Err("the copies of Burn make no images".into()),
        }
    }

    /// Starts to copy.
    fn start(
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
            Self::Direct(stream) => return stream.start(&bytes, parts, aim.consumer, aim.most),
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
    fn settle(&mut self, target: &Target, bytes: usize) -> Result<(), BoxError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thread_of_a_device_is_told() {
        let (threads, device) = (ThreadCounts::none(), Device::flex());
        threads.enter(&device);
        threads.enter(&device);
        assert!(!threads.leave(&device));
        threads.enter(&device); // another loader's
        assert!(!threads.leave(&device));
        assert!(threads.leave(&device));
        threads.enter(&device);
        assert!(threads.leave(&device));
    }
}
