//! Turns host bytes into tensors on the device. All device calls of a loader's threads go through [`Uploader`], where
//! the watchdog sees them and a panic becomes an error.

use super::{
    destination::Destination,
    flat::{DeviceTensor, Failure, FlatTensor, Redo},
    target::Target,
    threads::THREADS,
    transport::{Burn, Transport},
    window::InUse,
};
use crate::{
    fault::{BoxError, Error, guard},
    image_rows::LongFiles,
    memory::Slot,
    observe::Counters,
    vocabulary::{BatchKey, Place, Stage},
};
use burn::tensor::StreamId;
use std::mem;

/// A transfer thread's way to its device.
pub(crate) struct Uploader {
    transport: Box<dyn Transport>,
    target: Target,
    /// The CubeCL stream of the thread that takes the batches.
    consumer: StreamId,
    /// The most batches for which unused device memory is kept.
    most: usize,
}

impl Uploader {
    /// Uses Burn's transport, for a device of any kind.
    pub(crate) fn burn(target: &Target) -> Self {
        Self { transport: Box::new(Burn), target: target.clone(), consumer: StreamId::current(), most: 0 }
    }

    /// Uses the transport that `open` returns, or Burn's if it cannot be opened.
    pub(crate) fn open(
        target: &Target,
        counters: &Counters,
        open: impl FnOnce() -> Result<Box<dyn Transport>, BoxError>,
    ) -> Self {
        THREADS.count_in(&target.device);
        let uploader = Self::burn(target);
        match guard(Place::batch(Stage::Transfer, BatchKey::NONE), open) {
            Ok(transport) => Self { transport, ..uploader },
            Err(problem) => {
                counters.warn(&format!("Burn makes the copies to the device, which is slower: {problem}"));
                uploader
            }
        }
    }

    /// Copies for the thread with this CubeCL stream from now on. Keeps memory of the device for at most `most` batches
    /// that nothing uses.
    pub(crate) fn copy_for(&mut self, consumer: StreamId, most: usize) {
        (self.consumer, self.most) = (consumer, most);
    }

    /// The thread that a batch of these tensors is copied for, and how much memory is kept for it. Each tensor has one
    /// block.
    fn destination(&self, parts: &[FlatTensor]) -> Destination {
        Destination { consumer: self.consumer, batches: self.most, fields: parts.len() }
    }

    /// Makes the images of a slot on the device. Blocks until they are there.
    ///
    /// # Errors
    /// If the device fails or has no memory, or a file can be decoded neither there nor by `redo`. [`Error::Device`] if
    /// a wait for the device failed. Then it may still read the slot and the long files, so they are never freed, and
    /// another batch gets the permit.
    #[cfg_attr(not(feature = "vision"), expect(dead_code, reason = "without images there is nothing to decode"))]
    pub(crate) fn decode(
        &mut self,
        slot: &mut Slot,
        parts: &[FlatTensor],
        long: &mut LongFiles,
        place: Place,
        redo: Redo<'_>,
    ) -> Result<Vec<DeviceTensor>, Error> {
        let destination = self.destination(parts);
        let images: Vec<FlatTensor> = parts.iter().filter(|part| part.images.is_some()).cloned().collect();
        let Self { transport, target, .. } = self;
        let decoded = guard(place, || Ok(transport.decode(target, (slot, long), &images, destination, redo)));
        let (error, lost) = match decoded {
            Ok(Ok(made)) => return Ok(made),
            Ok(Err(Failure::Sample(error))) | Err(error) => (error, false),
            Ok(Err(Failure::Device(source))) => (Error::Failed { place, source }, false),
            Ok(Err(Failure::Lost(error))) => (Error::Device { place, message: error.to_string() }, true),
        };
        // Blocks were taken, and are given back once nothing is written to them.
        let settled = self.settle(0, place);
        if lost || settled.is_err() {
            slot.keep_for_ever();
            mem::forget(mem::take(long));
        }
        Err(settled.err().unwrap_or(error))
    }

    /// Waits until nothing is on its way to the device.
    fn settle(&mut self, bytes: usize, place: Place) -> Result<(), Error> {
        guard(place, || self.transport.settle(&self.target, bytes)).map_err(|error| match error {
            Error::Failed { place, source } => Error::Device { place, message: source.to_string() },
            other => other,
        })
    }

    /// Copies the tensors of a slot to the device, without the images that the device makes. Blocks until they are
    /// there and the slot is free. Returns a tensor for each part that was copied, of the kind that its dtype calls
    /// for.
    ///
    /// # Errors
    /// If the device has no memory for it or refuses a copy. [`Error::Device`] if the copies did not end well. Then the
    /// device may still read the slot's memory, so this memory may never be freed, and another batch gets its permit.
    pub(crate) fn upload(
        &mut self,
        slot: Slot,
        parts: &[FlatTensor],
        place: Place,
    ) -> Result<Vec<DeviceTensor>, Error> {
        let (give_up, kind) = (slot.give_up(), slot.kind());
        let bytes = slot.freeze();
        let destination = self.destination(parts);
        let parts: Vec<FlatTensor> = parts.iter().filter(|part| part.images.is_none()).cloned().collect();
        let total = parts.iter().map(FlatTensor::bytes).sum();
        let tensors = guard(place, || self.transport.start(&self.target, bytes, kind, &parts, destination));
        // This is done also after a failure, since a part of the batch may be on its way.
        let Err(error) = self.settle(total, place) else { return tensors };
        drop(tensors);
        give_up(); // this does nothing if the slot has come back by now
        Err(error)
    }

    /// Releases what was dropped on this thread. Burn's fusion keeps it until this thread has more work.
    pub(crate) fn flush(&mut self, place: Place) -> Result<(), Error> {
        guard(place, || self.transport.flush(&self.target))
    }

    /// Returns what tells whether the device still uses the memory of the batch that was uploaded last, and the bytes
    /// of that batch. Returns `None` where that cannot be known.
    pub(crate) fn in_use(&mut self) -> Option<(InUse, usize)> {
        self.transport.in_use()
    }

    /// Ends the use of the device by this thread.
    pub(crate) fn close(self) {
        let Self { transport, target, .. } = self;
        let closed = guard(Place::batch(Stage::Transfer, BatchKey::NONE), || {
            drop(transport); // a copy stream must release its memory before the pools of that memory are cleaned up
            // CubeCL keeps the memory pools of its streams. Freeing unused memory stalls all work on the device, so
            // only the last loader on the device does that.
            if THREADS.count_out(&target.device) && !target.host {
                target.device.memory_cleanup();
            }
            Ok(())
        });
        if let Err(error) = closed {
            log::warn!("burn-pinned: an error at the end of a transfer thread: {error}");
        }
    }
}

#[cfg(all(test, feature = "vision"))]
mod tests {
    use super::*;
    use crate::{
        device::tests::{Breaks, Fake, Hang, accelerator},
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
            let transport = Box::new(Fake::open(move || Some(breaks), &Arc::<Hang>::default()));
            let mut uploader = Uploader { transport, ..Uploader::burn(&accelerator()) };
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
