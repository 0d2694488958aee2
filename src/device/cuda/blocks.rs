//! The blocks of device memory of a loader: which block the next batch takes, and which blocks go back to CubeCL.

use super::{
    block::{Block, BlockMemory, BlockStage, record},
    context::InContext,
};
use crate::device::{
    destination::Destination,
    reuse::{reached, surplus},
};
use crate::sync::locks::{Mutex, MutexGuard};
use burn::tensor::StreamId;
use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// The blocks of a loader that are not being copied to. The block that was used last comes last.
#[derive(Debug, Default)]
pub(crate) struct DeviceBlocks {
    idle: Mutex<Vec<Arc<Block>>>,
    /// Held by the one thread that looks for free blocks.
    looks: Mutex<()>,
    /// Held by a thread that found no memory, until it has retried.
    reclaims: Mutex<()>,
    /// The number of blocks of a batch.
    fields: AtomicUsize,
    /// The most blocks that are kept while no epoch is in progress. No limit while batches take blocks.
    rest: AtomicUsize,
}

/// A block may be larger than a field by this number of bytes.
const SPARE_BYTES: usize = 4096;

impl DeviceBlocks {
    /// Takes the smallest free block of at least `bytes` bytes for the stream of a consumer, with the handle that pins
    /// its address. Gives back surplus free blocks.
    pub(in crate::device) fn take(&self, bytes: usize, destination: Destination) -> Option<(Arc<Block>, BlockMemory)> {
        self.fields.store(destination.fields, Relaxed);
        self.rest.store(usize::MAX, Relaxed);
        let is_free = |block: &Block| block.stage() == BlockStage::Free;
        let fits = |block: &Block| {
            block.owner == destination.consumer && (bytes..=2 * bytes + SPARE_BYTES).contains(&block.bytes)
        };
        let mut idle = self.idle.lock();
        let free = idle.iter().enumerate().filter(|(_, block)| fits(block) && is_free(block));
        let best = free.min_by_key(|(_, block)| block.bytes).map(|(at, _)| at);
        let taken = best.map(|at| idle.remove(at));
        drop(idle);
        self.trim(destination.batches.saturating_mul(destination.fields), |block| is_free(block).then_some(true));
        let block = taken?;
        let memory = block.use_again()?;
        Some((block, memory))
    }

    /// Puts a block back that a batch was copied to.
    pub(in crate::device) fn give_back(&self, block: Arc<Block>) {
        self.idle.lock().push(block);
    }

    /// Waits until no other thread is giving up blocks, and prevents others from doing so.
    pub(in crate::device) fn reclaims(&self) -> MutexGuard<'_, ()> {
        self.reclaims.lock()
    }

    /// Gives back to CubeCL all blocks that it may have. Returns the streams that their memory belongs to.
    pub(in crate::device) fn give_up(&self) -> Vec<StreamId> {
        let mut streams: Vec<_> = self.trim(0, Block::may_go).iter().map(|block| block.owner).collect();
        streams.sort_unstable();
        streams.dedup();
        streams
    }

    /// Keeps the blocks of at most this many batches until a batch takes a block again. Other blocks go back to CubeCL:
    /// now, or when they are found to be free.
    pub(in crate::device) fn shrink(&self, batches: usize) {
        self.rest.store(batches.saturating_mul(self.fields.load(Relaxed)), Relaxed);
        self.look(true);
        self.trim_to_rest();
    }

    fn trim_to_rest(&self) {
        let most = self.rest.load(Relaxed);
        if most < usize::MAX {
            self.trim(most, Block::may_go);
        }
    }

    /// Takes out blocks for which it is not known when they are free. Also takes out other blocks, until at most `most`
    /// blocks with a worth remain. The caller drops them, outside the lock.
    fn trim(&self, most: usize, worth: impl Fn(&Block) -> Option<bool>) -> Vec<Arc<Block>> {
        let mut idle = self.idle.lock();
        let mut gone: Vec<_> = idle.extract_if(.., |block| block.stage() == BlockStage::Lost).collect();
        let blocks: Vec<_> = idle.iter().map(|block| (block.owner, worth(block))).collect();
        gone.extend(surplus(&blocks, most).into_iter().rev().map(|at| idle.remove(at)));
        gone
    }

    /// Whether tensors refer to some of the blocks.
    pub(in crate::device) fn have_tensors(&self) -> bool {
        self.idle.lock().iter().any(|block| !block.has_no_tensor())
    }

    /// Returns the streams of threads that have ended and whose tensors are still there. Each is returned once.
    pub(in crate::device) fn left_behind(&self) -> Vec<StreamId> {
        let mut streams: Vec<_> = self.idle.lock().iter().filter_map(|block| block.left_behind()).collect();
        streams.sort_unstable();
        streams.dedup();
        streams
    }

    /// Finds out which blocks are free by now, and gives back those that an idle loader does not keep. Does not wait. If `urgent`, the
    /// server at once launches the kernels that use dropped blocks, and records their events; otherwise with its next tasks.
    pub(in crate::device) fn look(&self, urgent: bool) {
        let Some(_looks) = self.looks.try_lock() else { return };
        let (mut dropped, mut used, mut launched) = (None, Vec::new(), Vec::new());
        for block in self.idle.lock().iter() {
            match block.stage() {
                BlockStage::Launched(nth) => launched.push((nth, block.owner, Arc::clone(block))),
                BlockStage::Used if block.has_no_tensor() => {
                    dropped.get_or_insert_with(|| block.server.clone());
                    if block.is_unshared() && block.ask() {
                        used.push(Arc::clone(block));
                    }
                }
                _ => {}
            }
        }
        record(&used);
        if let Some(server) = dropped.filter(|_| urgent) {
            server.flush_queue();
        }
        let context = launched.first().map(|(.., block)| Arc::clone(&block.context));
        if let Some(_in_context) = context.and_then(|context| InContext::new(&context).ok()) {
            reached(launched, |block| block.is_reached()).iter().for_each(|block| block.set_free());
        }
        self.trim_to_rest();
    }

    /// Records the events of blocks that no tensor refers to any more, after everything queued on CubeCL's server so
    /// far. Skips blocks whose event was already requested. Called when the next batch is first used, so right after
    /// the previous step.
    pub(in crate::device) fn mark(&self) {
        let is_left = |block: &&Arc<Block>| block.stage() == BlockStage::Used && block.has_no_tensor() && block.ask();
        let left: Vec<_> = self.idle.lock().iter().filter(is_left).map(Arc::clone).collect();
        record(&left); // without the lock: `record` may wait for the server
    }

    /// Frees the blocks once nothing uses them.
    pub(crate) fn clear(&self) {
        let blocks = mem::take(&mut *self.idle.lock());
        drop(blocks);
    }
}
