//! The memory blocks of permits: where they come from, and which are kept.

use super::{Pool, PoolState, Wait};
use crate::{
    fault::{Error, catch, idle},
    memory::block::HostBlock,
    sync::MutexGuard,
};
use std::{mem, sync::atomic::Ordering::Relaxed, time::Instant};

impl Pool {
    /// Takes a block for a permit: a free one, or a new one.
    pub(super) fn block(&self, bytes: usize, wait: &Wait<'_>) -> Result<HostBlock, Error> {
        if bytes > self.limits.bytes {
            return Err(Error::OverLimit { bytes, limit: self.limits.bytes });
        }
        let (start, mut told, mut refused) = (Instant::now(), false, false);
        loop {
            let mut state = self.lock();
            if state.closed || wait.ended.is_some_and(|ended| ended.load(Relaxed)) {
                return Err(Error::Ended);
            }
            // The block that came back last is the most likely to be in the cache.
            if let Some(at) = state.free.iter().rposition(|block| block.len() >= bytes) {
                return Ok(state.free.remove(at));
            }
            // The free blocks are too small, so this permit needs a larger one. Free blocks beyond the number of free
            // permits are freed, and so are blocks that prevent the new block from fitting within the limit.
            let mut small = Vec::new();
            while state.free.len() > self.left() || !state.has_room(bytes) {
                let Some(block) = state.free.pop() else { break };
                state.allocated -= block.len();
                self.counters.freed(block.len());
                small.push(block);
            }
            // After a refusal, memory that is away may come back.
            let awaits = refused && state.allocated == 0 && state.away > 0;
            if state.has_room(bytes) && !awaits {
                state.allocated += bytes;
                drop(state);
                drop(small);
                let error = match self.allocate(bytes) {
                    Ok(block) => return Ok(block),
                    Err(error) => error,
                };
                let goes_on = self.lock().make_do();
                if !goes_on {
                    return Err(error);
                }
                if !mem::replace(&mut told, true) {
                    self.counters.warn(&format!("there are fewer slots: {error}")); // the logger is user code
                }
                refused = true;
                continue; // keeps waiting for the memory that exists
            }
            if !small.is_empty() {
                drop(state);
                continue; // the blocks are freed outside the lock, and before the wait
            }
            self.waiting.fetch_add(1, Relaxed);
            let left = wait.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            state = idle(|| match left {
                None => self.changed.wait(state),
                Some(left) => self.changed.wait_for(state, left),
            });
            self.waiting.fetch_sub(1, Relaxed);
            refused = false;
            wait.took.set(start.elapsed());
            if left.is_some_and(|left| left.is_zero()) {
                let (waited, slots, iterators, kept) = (start.elapsed(), self.limits.slots, 0, state.away);
                return Err(Error::LeaseTimeout { waited, slots, iterators, kept });
            }
        }
    }

    /// Allocates a block whose bytes are counted already.
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        let start = Instant::now();
        let refused = |message| Error::OutOfHostMemory { kind: "host", bytes, message };
        // The allocator may be the user's.
        let block = match catch(|| self.alloc.allocate(bytes)) {
            Ok(Ok(block)) if block.len() != bytes => Err(refused(format!("the allocator gave {}", block.len()))),
            Ok(block) => block,
            Err(caught) => Err(refused(format!("the allocator panicked: {}", caught.message))),
        };
        match &block {
            Ok(block) => self.counters.allocated(block.len(), block.kind(), start.elapsed()),
            Err(_) => {
                self.lock().allocated -= bytes;
                self.permit_changed(); // a waiting thread finds free bytes again, or an error to report
            }
        }
        block
    }

    /// Allocates memory for every permit in advance. A refusal is only logged. It becomes an error later, if there is
    /// no memory at all.
    pub(crate) fn preallocate(&self, bytes: usize) {
        for _ in 0..self.limits.slots {
            {
                let mut state = self.lock();
                let most = state.limit.min(bytes.saturating_mul(self.limits.slots));
                if state.closed || state.allocated.saturating_add(bytes) > most {
                    return;
                }
                state.allocated += bytes;
            }
            match self.allocate(bytes) {
                Ok(block) => self.keep(self.lock(), block),
                Err(error) => {
                    self.lock().make_do();
                    return self.counters.warn(&format!("there are fewer slots: {error}"));
                }
            }
        }
    }

    /// Adds a counted block to the free blocks, or frees it if the pool is closed.
    pub(super) fn keep(&self, mut state: MutexGuard<'_, PoolState>, block: HostBlock) {
        let freed = if state.closed {
            state.allocated -= block.len();
            self.counters.freed(block.len());
            Some(block)
        } else {
            state.free.push(block);
            None
        };
        drop(state);
        self.permit_changed();
        drop(freed);
    }
}
