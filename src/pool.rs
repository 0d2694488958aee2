//! Slots: how many there are, who may have one, and what they may cost.
//!
//! A batch needs a permit to exist on the host; their number is fixed. Memory is put behind permits within the byte limit, in
//! the exact size asked for; it is allocated ahead of its use on the pin thread and kept for the loader's life.

use crate::{
    error::Error,
    slot::{HostAlloc, HostBlock, Slot, SlotHome},
    stats::Counters,
};
use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// On a CPU backend a delivered batch takes its memory along. So many blocks more than there are permits are kept when they
/// come back, for the next batches: the one being trained on, and the one that the loop still holds while it asks for the next.
pub(crate) const SPARE: usize = 2;

/// What a pool may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Permits, and so the most batches in the pipeline.
    pub(crate) slots: usize,
    /// The most bytes of memory, lent or free.
    pub(crate) bytes: usize,
}

#[derive(Debug)]
struct State {
    permits: usize,
    free: Vec<HostBlock>,
    /// Bytes of the free blocks and of those behind permits.
    allocated: usize,
    closed: bool,
}

/// The pool. All of its waits end when it is closed.
#[derive(Debug)]
pub(crate) struct Pool {
    alloc: Arc<dyn HostAlloc>,
    limits: Limits,
    state: Mutex<State>,
    changed: Condvar,
    counters: Arc<Counters>,
}

/// The right to have one batch in the pipeline, with no memory behind it (yet).
#[derive(Debug)]
pub(crate) struct Permit(Option<Arc<Pool>>);

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(pool) = self.0.take() {
            pool.lock().permits += 1;
            pool.changed.notify_all();
        }
    }
}

impl Pool {
    pub(crate) fn new(alloc: Arc<dyn HostAlloc>, limits: Limits, counters: Arc<Counters>) -> Arc<Self> {
        let state = Mutex::new(State { permits: limits.slots, free: Vec::new(), allocated: 0, closed: false });
        Arc::new(Self { alloc, limits, state, changed: Condvar::new(), counters })
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a permit, up to `patience`; `None` if none came in time or the pool was closed.
    pub(crate) fn permit(self: &Arc<Self>, patience: Duration) -> Option<Permit> {
        let none = |state: &mut State| state.permits == 0 && !state.closed;
        let (mut state, _) =
            self.changed.wait_timeout_while(self.lock(), patience, none).unwrap_or_else(PoisonError::into_inner);
        if state.permits == 0 || state.closed {
            return None;
        }
        state.permits -= 1;
        Some(Permit(Some(Arc::clone(self))))
    }

    /// Puts memory of at least `bytes` bytes behind a permit. Waits up to `patience` where blocks of other sizes are in the way.
    ///
    /// # Errors
    /// [`Error::OverLimit`], [`Error::OutOfHostMemory`], [`Error::LeaseTimeout`]; the permit is released.
    pub(crate) fn slot(self: &Arc<Self>, mut permit: Permit, bytes: usize, patience: Duration) -> Result<Slot, Error> {
        let block = self.block(bytes, patience)?;
        permit.0 = None; // the slot has it now
        Ok(Slot::new(block, Arc::clone(self) as Arc<dyn SlotHome>))
    }

    /// Parts a slot from its permit: the memory is the consumer's from now on, and comes back when the consumer drops it.
    pub(crate) fn detach(self: &Arc<Self>, slot: &mut Slot) -> Permit {
        slot.detach();
        Permit(Some(Arc::clone(self)))
    }

    fn block(&self, bytes: usize, patience: Duration) -> Result<HostBlock, Error> {
        if bytes > self.limits.bytes {
            return Err(Error::OverLimit { bytes, limit: self.limits.bytes });
        }
        let mut too_small = Vec::new();
        let in_the_way = |state: &mut State| {
            let fits = state.free.iter().any(|block| block.len() >= bytes);
            while !fits && state.allocated + bytes > self.limits.bytes {
                let Some(block) = state.free.pop() else { return !state.closed };
                state.allocated -= block.len();
                too_small.push(block);
            }
            false
        };
        let (mut state, timeout) =
            self.changed.wait_timeout_while(self.lock(), patience, in_the_way).unwrap_or_else(PoisonError::into_inner);
        too_small.iter().for_each(|block| self.counters.freed(block.len()));
        if state.closed {
            return Err(Error::Ended);
        }
        if timeout.timed_out() {
            return Err(Error::LeaseTimeout { waited: patience, slots: self.limits.slots });
        }
        if let Some(at) = state.free.iter().position(|block| block.len() >= bytes) {
            return Ok(state.free.swap_remove(at));
        }
        state.allocated += bytes;
        drop(state);
        drop(too_small);
        self.allocate(bytes)
    }

    /// Allocates a block whose bytes are counted already.
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        let start = Instant::now();
        let block = self.alloc.allocate(bytes);
        match &block {
            Ok(block) => self.counters.allocated(block.len(), block.kind(), start.elapsed()),
            Err(_) => self.lock().allocated -= bytes,
        }
        block
    }

    /// Allocates memory for every permit ahead of its use. A refusal is only logged: it becomes an error where the memory is
    /// missed.
    pub(crate) fn preallocate(&self, bytes: usize) {
        for _ in 0..self.limits.slots {
            {
                let mut state = self.lock();
                if state.closed || state.allocated + bytes > bytes * self.limits.slots {
                    return;
                }
                state.allocated += bytes;
            }
            match self.allocate(bytes) {
                Ok(block) => {
                    self.lock().free.push(block);
                    self.changed.notify_all();
                }
                Err(error) => return log::warn!("burn-pinned goes on with fewer slots: {error}"),
            }
        }
    }

    /// Ends all waits; memory that comes back from now on is freed.
    pub(crate) fn close(&self) {
        let freed = {
            let mut state = self.lock();
            state.closed = true;
            state.allocated -= state.free.iter().map(HostBlock::len).sum::<usize>();
            std::mem::take(&mut state.free)
        };
        self.changed.notify_all();
        freed.iter().for_each(|block| self.counters.freed(block.len()));
    }
}

impl SlotHome for Pool {
    fn give_back(&self, block: HostBlock, with_permit: bool) {
        let mut state = self.lock();
        let keep = if with_permit {
            state.permits += 1;
            !state.closed
        } else {
            let room = state.free.len() < self.limits.slots + SPARE
                && state.allocated.saturating_add(block.len()) <= self.limits.bytes;
            state.allocated += block.len();
            room && !state.closed
        };
        let dropped = if keep {
            state.free.push(block);
            None
        } else {
            state.allocated -= block.len();
            self.counters.freed(block.len());
            Some(block)
        };
        drop(state);
        self.changed.notify_all();
        drop(dropped);
    }

    fn detach(&self, bytes: usize) {
        self.lock().allocated -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::HeapAlloc;
    use proptest::prelude::*;

    const SOON: Duration = Duration::from_millis(5);

    fn pool(slots: usize, bytes: usize) -> Arc<Pool> {
        Pool::new(Arc::new(HeapAlloc), Limits { slots, bytes }, Arc::default())
    }

    #[test]
    fn memory_is_reused_and_waits_end() {
        let pool = pool(2, 200);
        pool.preallocate(100);
        let a = pool.slot(pool.permit(SOON).unwrap(), 100, SOON).unwrap();
        let b = pool.slot(pool.permit(SOON).unwrap(), 100, SOON).unwrap();
        assert!(pool.permit(SOON).is_none());
        let at = a.as_slice().as_ptr();
        drop(a);
        let c = pool.slot(pool.permit(SOON).unwrap(), 100, SOON).unwrap();
        assert_eq!(c.as_slice().as_ptr(), at);
        assert_eq!(pool.counters.snapshot().allocations, 2);
        let waiting = std::thread::spawn({
            let pool = Arc::clone(&pool);
            move || pool.permit(Duration::from_secs(60)).is_none()
        });
        pool.close();
        assert!(waiting.join().unwrap());
        drop((b, c));
        assert_eq!(pool.counters.snapshot().host_bytes, 0);
    }

    #[test]
    fn a_batch_larger_than_the_limit_is_an_error() {
        let pool = pool(2, 200);
        let error = pool.slot(pool.permit(SOON).unwrap(), 201, SOON).unwrap_err();
        assert!(matches!(error, Error::OverLimit { bytes: 201, limit: 200 }), "{error}");
        assert!(pool.permit(SOON).is_some(), "the permit came back");
    }

    #[test]
    fn blocks_in_the_way_time_out() {
        let pool = pool(2, 200);
        let _held = pool.slot(pool.permit(SOON).unwrap(), 150, SOON).unwrap();
        let error = pool.slot(pool.permit(SOON).unwrap(), 100, SOON).unwrap_err();
        assert!(matches!(error, Error::LeaseTimeout { .. }), "{error}");
    }

    proptest! {
        /// Whatever the sizes and the order of lending, detaching and returning: never above the limit, all freed at the end.
        #[test]
        fn the_limit_holds(slots in 1usize..5, steps in prop::collection::vec((0usize..4, 1usize..120), 1..60)) {
            let pool = pool(slots, 250);
            let mut held = Vec::new();
            for (action, size) in steps {
                match action {
                    0 | 1 => if let Some(permit) = pool.permit(Duration::ZERO)
                        && let Ok(slot) = pool.slot(permit, size, Duration::ZERO) { held.push((slot, None)) },
                    2 => drop(held.pop()),
                    _ => if let Some((slot, permit)) = held.first_mut() && permit.is_none() {
                        *permit = Some(pool.detach(slot));
                    },
                }
                let state = pool.lock();
                prop_assert!(state.allocated <= 250 && state.permits <= slots);
                let free: usize = state.free.iter().map(HostBlock::len).sum();
                prop_assert!(free <= state.allocated);
            }
            drop(held);
            prop_assert_eq!(pool.lock().permits, slots);
            pool.close();
            prop_assert_eq!(pool.lock().allocated, 0);
            prop_assert_eq!(pool.counters.snapshot().host_bytes, 0);
        }
    }
}
