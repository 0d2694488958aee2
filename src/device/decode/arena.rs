//! Device memory for decoded pictures, reused by one batch after the other.
#![expect(unsafe_code)]

use crate::{
    device::cuda::context::InContext,
    sync::locks::{Condvar, Mutex},
};
use cudarc::driver::{CudaContext, DriverError, result, sys::CUdeviceptr};
use std::{mem, sync::Arc};

/// A block of device memory.
pub(super) struct Arena {
    start: CUdeviceptr,
    bytes: usize,
    context: Arc<CudaContext>,
}

impl Arena {
    fn empty(context: &Arc<CudaContext>) -> Self {
        Self { start: 0, bytes: 0, context: Arc::clone(context) }
    }

    /// Returns the start of at least `bytes` bytes. Earlier contents may be lost. Nothing on the device may be using
    /// the memory.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<CUdeviceptr, DriverError> {
        if bytes > self.bytes {
            self.free()?;
            // A little more, so that the next batch has room too.
            let wanted = bytes + bytes / 16;
            let _in_context = InContext::new(&self.context)?;
            // SAFETY: it only allocates.
            (self.start, self.bytes) = (unsafe { result::malloc_sync(wanted) }?, wanted);
        }
        Ok(self.start)
    }

    fn free(&mut self) -> Result<(), DriverError> {
        if self.bytes == 0 {
            return Ok(());
        }
        self.bytes = 0;
        let _in_context = InContext::new(&self.context)?;
        // SAFETY: allocated in `start`, and freed once. Nothing uses it: whoever took the arena has waited.
        unsafe { result::free_sync(self.start) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if let Err(error) = self.free() {
            log::debug!("burn-pinned: memory for decoded pictures could not be freed: {error}");
        }
    }
}

/// The arenas of a device: while one batch is decoded, the one before is resized.
pub(super) struct Arenas {
    idle: Mutex<Vec<Arena>>,
    back: Condvar,
}

/// An arena in use. The drop gives it back.
pub(super) struct ArenaLoan<'a> {
    pub(super) arena: Arena,
    arenas: &'a Arenas,
}

impl Arenas {
    pub(super) fn new(count: usize, context: &Arc<CudaContext>) -> Self {
        Self { idle: Mutex::new((0..count).map(|_| Arena::empty(context)).collect()), back: Condvar::new() }
    }

    /// Waits for an arena. Each is given back after a batch.
    pub(super) fn take(&self) -> ArenaLoan<'_> {
        let mut idle = self.idle.lock();
        loop {
            if let Some(arena) = idle.pop() {
                return ArenaLoan { arena, arenas: self };
            }
            idle = self.back.wait(idle);
        }
    }
}

impl ArenaLoan<'_> {
    /// Never frees the memory, because the device may still use it. An empty arena is given back.
    pub(super) fn keep_for_ever(&mut self) {
        let empty = Arena::empty(&self.arena.context);
        mem::forget(mem::replace(&mut self.arena, empty));
    }
}

impl Drop for ArenaLoan<'_> {
    fn drop(&mut self) {
        let context = Arc::clone(&self.arena.context);
        self.arenas.idle.lock().push(mem::replace(&mut self.arena, Arena::empty(&context)));
        self.arenas.back.notify_one();
    }
}
