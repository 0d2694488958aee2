//! What the transfer threads of a pipeline share: blocks of device memory, and the way to let Burn begin its work.

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

/// What the transfer threads of a pipeline share.
#[derive(Debug, Default, Clone)]
pub(crate) struct TransferState {
    pub(in crate::device) blocks: Arc<DeviceBlocks>,
    /// Set when the first batch is copied.
    pub(in crate::device) pending: Arc<OnceLock<PendingTasks>>,
}

impl TransferState {
    /// Finds out which memory of the device is free by now. Does not wait. Memory that was just dropped is found by a
    /// later call: by one soon after if this is `urgent`, else once the device has more to do.
    pub(crate) fn find_free(&self, urgent: bool) {
        self.blocks.look(urgent);
    }

    /// Lets Burn begin the operations that it has gathered. Memory that was dropped is then released, unless Burn waits
    /// for more operations to run together. Does not wait.
    pub(crate) fn hurry(&self) {
        if let Some(pending) = self.pending.get() {
            pending.submit();
        }
    }

    /// As [`hurry`](Self::hurry), and also runs the operations that threads have left to Burn when they ended: nobody
    /// else would.
    pub(crate) fn make_room(&self) {
        if let Some(pending) = self.pending.get().filter(|pending| pending.may_drain()) {
            self.blocks.left_behind().into_iter().for_each(|stream| pending.drain(stream));
        }
        self.hurry();
    }

    /// Runs the operations that the calling thread has left to Burn at the end of an epoch. The thread may end now, and
    /// then the memory that it has dropped last would never be released. With a number of batches, keeps device memory
    /// for at most this number until the next batch is copied.
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
