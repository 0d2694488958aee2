//! How bytes of host memory become tensors on the device. All that a loader's threads ask of a device goes through
//! [`Uploader`], where the watchdog sees it and a panic becomes an error.

#[cfg(test)]
use super::way::Breaks;
use super::{
    aim::Aim,
    call::DeviceCall,
    flat::{Failure, Part, Redo, Uploaded},
    target::Target,
    threads::THREADS,
    way::Way,
    window::InUse,
};
#[cfg(feature = "cuda")]
use super::{cuda_blocks::Blocks, cuda_copy::CopyStream, cuda_tensor::Gathered};
use crate::{
    fault::{BoxError, Error, guard},
    memory::{LongFiles, Slot},
    vocabulary::{BatchKey, Place, Stage},
};
use burn::tensor::{Device, StreamId};
use std::mem;
#[cfg(test)]
use std::time::Instant;
#[cfg(feature = "cuda")]
use std::{
    sync::{Arc, OnceLock},
    thread,
};

/// What the transfer threads of a pipeline share.
#[derive(Debug, Default, Clone)]
pub(crate) struct Common {
    #[cfg(feature = "cuda")]
    blocks: Arc<Blocks>,
    /// Set with the first batch.
    #[cfg(feature = "cuda")]
    gathered: Arc<OnceLock<Gathered>>,
}

impl Common {
    /// Finds out which memory of the device is free by now. Does not wait. A later call sees what was just dropped: soon if
    /// that is `urgent`, else once the device has more to do.
    pub(crate) fn look(&self, urgent: bool) {
        #[cfg(feature = "cuda")]
        self.blocks.look(urgent);
        let _ = urgent;
    }

    /// Lets Burn begin what it was asked for. What was dropped is released then, unless Burn waits for more operations
    /// to run together. Does not wait.
    pub(crate) fn hurry(&self) {
        #[cfg(feature = "cuda")]
        if let Some(gathered) = self.gathered.get() {
            gathered.begin();
        }
    }

    /// Does the same, and runs what threads that have ended have left to Burn: nobody else would.
    pub(crate) fn make_room(&self) {
        #[cfg(feature = "cuda")]
        if let Some(gathered) = self.gathered.get().filter(|gathered| gathered.may_drain()) {
            self.blocks.left_behind().into_iter().for_each(|stream| gathered.drain(stream));
        }
        self.hurry();
    }

    /// Runs what the calling thread, which ends an epoch, has left to Burn: it may end now, and then what it has dropped
    /// last would never be released. With a number of batches, keeps memory of the device for so many of them at most,
    /// until the next is copied.
    pub(crate) fn rest(&self, batches: Option<usize>) {
        #[cfg(feature = "cuda")]
        if let Some(gathered) = self.gathered.get().filter(|_| !thread::panicking()) {
            let rest = || {
                if self.blocks.have_tensors() && gathered.may_drain() {
                    gathered.drain(StreamId::current());
                }
                gathered.begin();
                batches.into_iter().for_each(|batches| self.blocks.rest(batches));
                Ok(())
            };
            if let Err(error) = guard(Place::batch(Stage::Finish, BatchKey::NONE), rest) {
                log::debug!("burn-pinned: an error at the end of an epoch: {error}");
            }
        }
        let _ = batches;
    }
}

/// A transfer thread's way to its device.
pub(crate) struct Uploader {
    way: Way,
    target: Target,
    /// The CubeCL stream of the thread that takes the batches.
    consumer: StreamId,
    /// Memory of the device is kept for so many batches though nothing uses it.
    most: usize,
}

impl Uploader {
    /// Burn's own way, for a device of any kind.
    pub(crate) fn burn(target: &Target) -> Self {
        let (target, consumer) = (target.clone(), StreamId::current());
        Self { way: Way::Burn, target, consumer, most: 0 }
    }

    /// The fastest way to a device.
    pub(crate) fn open(target: &Target, common: &Common) -> Self {
        THREADS.enter(&target.device);
        let uploader = Self::burn(target);
        let way = uploader.call(DeviceCall::Open, Place::batch(Stage::Transfer, BatchKey::NONE), |_| {
            #[cfg(feature = "cuda")]
            if let Some(ordinal) = crate::device::cuda_context::ordinal(&target.device) {
                let stream = CopyStream::new(ordinal, &target.device, &common.blocks, &common.gathered);
                return stream.map(Box::new).map(Way::Direct);
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
        (self.consumer, self.most) = (consumer, most);
    }

    /// Whom a batch of these parts is copied for. Each part has a block of memory.
    fn aim_of(&self, parts: &[Part]) -> Aim {
        Aim { consumer: self.consumer, batches: self.most, fields: parts.len() }
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

    /// Makes those parts of a slot on the device that are images. Blocks until they are there.
    ///
    /// # Errors
    /// If the device fails or has no memory, or a file can be decoded neither there nor by `redo`. [`Error::Device`] if
    /// a wait for the device failed. Then it may still read the slot and the long files, so they are kept for ever, and
    /// another batch gets the permit.
    #[cfg_attr(not(feature = "vision"), expect(dead_code, reason = "without images there is nothing to decode"))]
    pub(crate) fn decode(
        &mut self,
        slot: &mut Slot,
        parts: &[Part],
        long: &mut LongFiles,
        place: Place,
        redo: Redo<'_>,
    ) -> Result<Vec<Uploaded>, Error> {
        let aim = self.aim_of(parts);
        let images: Vec<Part> = parts.iter().filter(|part| part.images.is_some()).cloned().collect();
        let Self { way, target, .. } = self;
        let decoded = Self::watched(target, DeviceCall::Decode, place, |_| {
            Ok(way.decode(target, (slot, long), &images, aim, redo))
        });
        let (error, lost) = match decoded {
            Ok(Ok(made)) => return Ok(made),
            Ok(Err(Failure::Sample(error))) | Err(error) => (error, false),
            Ok(Err(Failure::Device(source))) => (Error::Failed { place, source }, false),
            Ok(Err(Failure::Lost(error))) => (Error::Device { place, message: error.to_string() }, true),
        };
        // Blocks were taken, and are given back once nothing is written to them.
        let settled = Self::settle(way, target, 0, place);
        if lost || settled.is_err() {
            slot.keep_for_ever();
            mem::forget(mem::take(long));
        }
        Err(settled.err().unwrap_or(error))
    }

    /// Waits until nothing is on its way to the device.
    fn settle(way: &mut Way, target: &Target, bytes: usize, place: Place) -> Result<(), Error> {
        guard(place, || way.settle(target, bytes)).map_err(|error| match error {
            Error::Failed { place, source } => Error::Device { place, message: source.to_string() },
            other => other,
        })
    }

    /// Copies the parts of a slot to the device, but for images that the device makes. Blocks until they are there and
    /// the slot is free. Returns a tensor for each part that was copied, of the kind that its dtype calls for.
    ///
    /// # Errors
    /// If the device has no memory for it or refuses a copy. [`Error::Device`] if the copies did not end well. Then the
    /// device may still read the slot's memory, so this memory may be kept for ever, and another batch gets its permit.
    pub(crate) fn upload(&mut self, slot: Slot, parts: &[Part], place: Place) -> Result<Vec<Uploaded>, Error> {
        let (give_up, kind) = (slot.give_up(), slot.kind());
        let bytes = slot.freeze();
        let aim = self.aim_of(parts);
        let parts: Vec<Part> = parts.iter().filter(|part| part.images.is_none()).cloned().collect();
        let total = parts.iter().map(|part| part.range.len()).sum();
        let Self { way, target, .. } = self;
        let tensors =
            Self::watched(target, DeviceCall::Upload, place, |device| way.start(bytes, kind, &parts, device, aim));
        // Also after a failure: a part of the batch may be on its way.
        let Err(error) = Self::settle(way, target, total, place) else { return tensors };
        drop(tensors);
        give_up(); // does nothing if the slot has come back by now
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        memory::{HeapAlloc, Pool, PoolLimits, Wait},
        observe::Counters,
    };
    use std::{sync::Arc, time::Duration};

    /// What a device may still read stays where it is: the slot, and files beside it.
    #[test]
    fn a_batch_whose_decoding_does_not_end_keeps_its_memory() {
        for breaks in [Breaks::LostInDecode, Breaks::Decode] {
            let counters = Arc::<Counters>::default();
            let limits = PoolLimits { slots: 1, bytes: 4096 };
            let pool = Pool::new(Arc::new(HeapAlloc), limits, Arc::clone(&counters));
            let slot = || {
                let permit = pool.permit(Duration::from_secs(5)).expect("a permit");
                pool.slot(permit, 4096, &Wait::at_most(Duration::from_secs(5))).expect("a slot")
            };
            let (mut first, file) = (slot(), bytes::Bytes::from(vec![7; 100]));
            let mut long = LongFiles::from([(3, file.clone())]);
            let place = Place::batch(Stage::Decode, BatchKey::NONE);
            let mut uploader = Uploader::broken(&Target::fake(), breaks);
            let redo: Redo<'_> = &|_, _, _| Ok(Vec::new());
            let error = uploader.decode(&mut first, &[], &mut long, place, redo).expect_err("the device is broken");
            let lost = breaks == Breaks::LostInDecode;
            assert_eq!(matches!(error, Error::Device { .. }), lost, "{error:?}");
            drop((first, long));
            assert_eq!(file.is_unique(), !lost, "the file is freed, or kept");
            drop(slot());
            assert_eq!(counters.snapshot().allocations, if lost { 2 } else { 1 }, "the memory is used again, or kept");
        }
    }
}
