//! Slots: how many there are, who may have one, and how much memory they may take.
//!
//! A batch needs a permit to exist on the host. The number of permits is fixed. A permit gets memory of exactly the requested size, within
//! the byte limit. On an accelerator the pin thread allocates it in advance if the size is known; otherwise the thread that needs it
//! allocates it. It is kept as long as the loader lives.
//!
//! Some memory can be away: on a CPU backend, the tensors of finished batches own their memory. Memory that is away does not count towards
//! the limit. When it comes back, the pool keeps it if the limit allows it.

use super::{
    block::{HostAlloc, HostBlock},
    slot::{PermitFlag, Slot, SlotHome},
};
use crate::{
    fault::Error,
    observe::Counters,
    sync::{Condvar, Mutex, MutexGuard},
};
use std::{
    cell::Cell,
    mem,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// How many blocks beyond the number of permits are kept when they come back. On a CPU backend a delivered batch owns
/// its memory. Two such batches exist at a time: the one in training, and the previous one, which the loop may still
/// hold while it asks for the next.
pub(crate) const SPARE: usize = 2;

/// A wait for memory: what else ends the wait, and how long it took.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    ended: Option<&'a AtomicBool>,
    deadline: Option<Instant>,
    took: Cell<Duration>,
}

impl<'a> Wait<'a> {
    /// A wait until the memory is no longer wanted. The code that sets `ended` must call [`Pool::wake`] afterwards.
    pub(crate) fn until_ended(ended: &'a AtomicBool) -> Self {
        Self { ended: Some(ended), deadline: None, took: Cell::default() }
    }

    /// A wait of at most `time`.
    pub(crate) fn at_most(time: Duration) -> Self {
        Self { ended: None, deadline: Instant::now().checked_add(time), took: Cell::default() }
    }

    /// How long the wait took.
    pub(crate) fn took(&self) -> Duration {
        self.took.get()
    }
}

/// How many batches and bytes a pool may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolLimits {
    /// The number of permits, and so the most batches with memory.
    pub(crate) slots: usize,
    /// The most bytes of memory, lent or free.
    pub(crate) bytes: usize,
}

#[derive(Debug)]
struct PoolState {
    free: Vec<HostBlock>,
    /// Bytes of the free blocks and of the blocks that belong to permits.
    allocated: usize,
    /// The number of blocks that are away.
    away: usize,
    /// The byte limit, or the bytes that were allocated when the allocator refused more.
    limit: usize,
    closed: bool,
}

impl PoolState {
    /// Notes that `bytes` bytes leave the pool and will come back.
    fn goes_away(&mut self, bytes: usize) {
        self.allocated -= bytes;
        self.away += 1;
    }

    /// Lowers the limit to the allocated bytes after the allocator refused. Returns `false` if no memory is allocated,
    /// neither in the pool nor away.
    fn make_do(&mut self) -> bool {
        if self.allocated > 0 {
            self.limit = self.allocated;
        }
        self.allocated > 0 || self.away > 0
    }

    /// Whether this many more bytes are within the limit. If nothing is allocated they always are, even after a
    /// refusal.
    fn has_room(&self, bytes: usize) -> bool {
        self.allocated == 0 || self.allocated.saturating_add(bytes) <= self.limit
    }
}

/// The pool. All of its waits end when it is closed.
#[derive(derive_more::Debug)]
pub(crate) struct Pool {
    alloc: Arc<dyn HostAlloc>,
    limits: PoolLimits,
    state: Mutex<PoolState>,
    changed: Condvar,
    /// Called outside the pool's lock when a permit may have come back, so that no thread has to wait in the pool for a
    /// permit.
    #[debug(skip)]
    came_back: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// The size of each permit's slot in bytes, if it is known.
    slot_bytes: OnceLock<usize>,
    /// The number of free permits. It changes only under the lock, but may be read without it.
    left: AtomicUsize,
    /// The number of threads that wait for memory. It changes only under the lock.
    waiting: AtomicUsize,
    counters: Arc<Counters>,
}

/// The right to have one batch in the pipeline. It has no memory yet.
#[derive(Debug)]
pub(crate) struct Permit {
    /// `None` once a slot has the permit.
    pool: Option<Arc<Pool>>,
    held: PermitFlag,
}

impl Permit {
    /// Gives the permit back. The caller wakes the threads that may want it, because the caller knows more about them
    /// than the pool.
    pub(crate) fn give_back(mut self) {
        if let Some(pool) = self.pool.take() {
            pool.release(&pool.lock(), &self.held);
            pool.changed.notify_all();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.release(&pool.lock(), &self.held);
            pool.permit_changed();
        }
    }
}

impl Pool {
    pub(crate) fn new(alloc: Arc<dyn HostAlloc>, limits: PoolLimits, counters: Arc<Counters>) -> Arc<Self> {
        let free = Vec::new();
        let state = PoolState { free, allocated: 0, away: 0, limit: limits.bytes, closed: false };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let (came_back, slot_bytes) = (OnceLock::new(), OnceLock::new());
        let (left, waiting) = (AtomicUsize::new(limits.slots), AtomicUsize::new(0));
        Arc::new(Self { alloc, limits, state, changed, came_back, slot_bytes, left, waiting, counters })
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn limits(&self) -> PoolLimits {
        self.limits
    }

    #[cfg(all(test, burn_pinned_loom))]
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock()
    }

    /// Sets what is called when a permit may have come back. Each permit is for a slot of `bytes` bytes, if that is known.
    pub(crate) fn tell(&self, came_back: impl Fn() + Send + Sync + 'static, bytes: Option<usize>) {
        let told = self.came_back.set(Box::new(came_back));
        debug_assert!(told.is_ok(), "a pool has one pipeline");
        if let Some(bytes) = bytes {
            self.slot_bytes.get_or_init(|| bytes);
        }
    }

    fn permit_changed(&self) {
        self.changed.notify_all();
        if let Some(came_back) = self.came_back.get() {
            came_back();
        }
    }

    /// The number of free permits.
    fn left(&self) -> usize {
        self.left.load(Relaxed)
    }

    /// Takes a permit back, unless it was taken back before.
    fn release(&self, _: &PoolState, held: &PermitFlag) -> bool {
        let released = held.let_go();
        if released {
            self.left.store(self.left() + 1, Relaxed);
        }
        released
    }

    /// Whether a permit is free and its slot would get memory without waiting.
    pub(crate) fn has_permit(&self) -> bool {
        // The first condition takes no lock: workers ask this often, under a lock of their own.
        self.left() > 0 && self.has_memory(&self.lock())
    }

    /// Whether there is memory for the next slot: after the allocator refused, there may be fewer blocks than permits.
    fn has_memory(&self, state: &PoolState) -> bool {
        let fits = |bytes: &usize| state.has_room(*bytes) || state.free.iter().any(|block| block.len() >= *bytes);
        self.slot_bytes.get().is_none_or(fits)
    }

    /// The error of a wait for a slot that took too long, in a loader with `iterators` other iterators.
    pub(crate) fn lease_timeout(&self, waited: Duration, iterators: usize) -> Error {
        // The batches that the loop keeps hold memory, but no permits.
        let lacks_memory = self.left() > 0 || self.is_awaited();
        let kept = if lacks_memory { self.lock().away } else { 0 };
        Error::LeaseTimeout { waited, slots: self.limits.slots, iterators, kept }
    }

    /// Whether a thread waits for memory.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// Takes a permit, if one is free and its slot has memory.
    pub(crate) fn try_permit(self: &Arc<Self>) -> Option<Permit> {
        let state = self.lock();
        if self.has_memory(&state) { self.take(&state) } else { None }
    }

    fn take(self: &Arc<Self>, state: &PoolState) -> Option<Permit> {
        if state.closed {
            return None;
        }
        self.left.store(self.left().checked_sub(1)?, Relaxed);
        Some(Permit { pool: Some(Arc::clone(self)), held: PermitFlag::new() })
    }

    /// Waits for a permit, but no longer than `patience`. Returns `None` if none came in time or the pool was closed.
    pub(crate) fn permit(self: &Arc<Self>, patience: Duration) -> Option<Permit> {
        let none = |state: &mut PoolState| self.left() == 0 && !state.closed;
        let state = self.changed.wait_while_for(self.lock(), none, patience);
        self.take(&state)
    }

    /// Allows the pool to request memory again that the allocator refused before.
    pub(crate) fn ask_again(&self) {
        self.lock().limit = self.limits.bytes;
    }

    /// Gives a permit memory of at least `bytes` bytes. Waits while blocks of other sizes use up the limit.
    ///
    /// # Errors
    /// [`Error::OverLimit`], [`Error::OutOfHostMemory`], [`Error::Ended`] if the pool is closed or the memory is no
    /// longer wanted, [`Error::LeaseTimeout`] after the deadline. The permit is released.
    pub(crate) fn slot(self: &Arc<Self>, mut permit: Permit, bytes: usize, wait: &Wait<'_>) -> Result<Slot, Error> {
        let block = self.block(bytes, wait)?;
        permit.pool = None; // the slot has it now
        Ok(Slot::new(block, Arc::clone(self) as Arc<dyn SlotHome>, permit.held.clone()))
    }

    /// Separates a slot from its permit, and returns the permit. From now on the consumer owns the memory. It comes
    /// back when the consumer drops it.
    pub(crate) fn detach(self: &Arc<Self>, slot: &mut Slot) -> Option<Permit> {
        let held = slot.detach()?;
        Some(Permit { pool: Some(Arc::clone(self)), held })
    }

    /// Wakes the threads that wait for memory, so that they check whether it is still wanted.
    pub(crate) fn wake(&self) {
        drop(self.lock()); // a thread that found the memory still wanted is in its wait by now
        self.changed.notify_all();
    }

    /// Ends all waits. Memory that comes back from now on is freed.
    pub(crate) fn close(&self) {
        let freed = {
            let mut state = self.lock();
            state.closed = true;
            state.allocated -= state.free.iter().map(HostBlock::len).sum::<usize>();
            mem::take(&mut state.free)
        };
        self.changed.notify_all();
        freed.iter().for_each(|block| self.counters.freed(block.len()));
    }
}

impl SlotHome for Pool {
    fn give_back(&self, block: HostBlock, held: Option<&PermitFlag>) {
        let mut state = self.lock();
        if !held.is_some_and(|held| self.release(&state, held)) {
            state.away -= 1;
            let free = state.free.len() < self.limits.slots + SPARE;
            if !free || state.allocated.saturating_add(block.len()) > self.limits.bytes {
                drop(state);
                self.counters.freed(block.len());
                return drop(block);
            }
            state.allocated += block.len();
        }
        self.keep(state, block);
    }

    fn detach(&self, bytes: usize) {
        self.lock().goes_away(bytes);
        self.changed.notify_all();
    }

    fn lose(&self, held: &PermitFlag, bytes: usize) {
        let mut state = self.lock();
        if self.release(&state, held) {
            state.goes_away(bytes);
            drop(state);
            self.permit_changed();
        }
    }
}

mod blocks;
#[cfg(all(test, burn_pinned_loom))]
mod model;
#[cfg(test)]
mod tests;
