//! The shared state of the transfer threads of a pipeline: blocks of device memory, and access to Burn's queued tasks.

use super::{blocks::DeviceBlocks, tensor::PendingTasks};
use crate::{
    fault::guard,
    vocabulary::{BatchKey, Place, Stage},
};
use burn::tensor::StreamId;
use std::{
    sync::{Arc, OnceLock},
    thread,
};

/// The shared state of the transfer threads of a pipeline.
#[derive(Debug, Default, Clone)]
pub(crate) struct TransferState {
    pub(in crate::device) blocks: Arc<DeviceBlocks>,
    /// Set when the first batch is copied.
    pub(in crate::device) pending: Arc<OnceLock<PendingTasks>>,
}

impl TransferState {
    /// Finds out which device memory is free by now. Does not wait. Memory that was just dropped is found by a later
    /// call: soon if `urgent`, otherwise once the device gets more work.
    pub(crate) fn find_free(&self, urgent: bool) {
        self.blocks.look(urgent);
    }

    /// Makes Burn run its queued operations. This releases dropped memory, unless Burn waits for more operations to
    /// fuse. Does not wait.
    pub(crate) fn hurry(&self) {
        if let Some(pending) = self.pending.get() {
            pending.submit();
        }
    }

    /// Like [`hurry`](Self::hurry), but also runs operations that ended threads have left in Burn's queues, because no
    /// other thread would.
    pub(crate) fn make_room(&self) {
        if let Some(pending) = self.pending.get().filter(|pending| pending.may_drain()) {
            self.blocks.left_behind().into_iter().for_each(|stream| pending.drain(stream));
        }
        self.hurry();
    }

    /// Runs the operations that the calling thread has in Burn's queue at the end of an epoch. If the thread ended now,
    /// the memory that it dropped last would never be released. With a number of batches, keeps device memory for at
    /// most this many until the next batch is copied.
    pub(crate) fn end_epoch(&self, batches: Option<usize>) {
        if let Some(pending) = self.pending.get().filter(|_| !thread::panicking()) {
            let rest = || {
                if self.blocks.have_tensors() && pending.may_drain() {
                    pending.drain(StreamId::current());
                }
                pending.submit();
                batches.into_iter().for_each(|batches| self.blocks.shrink(batches));
                Ok(())
            };
            if let Err(error) = guard(Place::batch(Stage::Finish, BatchKey::NONE), rest) {
                log::debug!("burn-pinned: an error at the end of an epoch: {error}");
            }
        }
    }
}
