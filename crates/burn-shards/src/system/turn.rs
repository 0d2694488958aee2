//! A turn: one thread does something, and others wait for it.

use crate::system::{
    ends::LOOK,
    locks::{Condvar, Mutex},
};

/// A lock without a value, whose waits can be ended.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    is_taken: Mutex<bool>,
    free: Condvar,
}

/// Gives the turn back when it is dropped.
#[must_use]
pub(crate) struct TurnGuard<'a>(&'a Turn);

impl Turn {
    #[cfg(feature = "remote")]
    pub(crate) fn try_take(&self) -> Option<TurnGuard<'_>> {
        self.take(|| true)
    }

    /// Waits for the turn. Returns `None` soon after `ends` is true.
    pub(crate) fn take(&self, ends: impl Fn() -> bool) -> Option<TurnGuard<'_>> {
        let mut is_taken = self.is_taken.lock();
        while *is_taken {
            if ends() {
                return None;
            }
            is_taken = self.free.wait_for(is_taken, LOOK);
        }
        *is_taken = true;
        Some(TurnGuard(self))
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        *self.0.is_taken.lock() = false;
        self.0.free.notify_one();
    }
}
