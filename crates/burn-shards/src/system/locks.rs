//! The locks of std, without poison: a panic of user code is caught and told where it happens, and no lock outlives its reason.
//!
//! They hold all they know in themselves. Locks with a table of all waiting threads, as those of `parking_lot`, do not survive a
//! fork: a child inherits entries of threads that it has not.

use std::{
    sync::{
        self, PoisonError, TryLockError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

pub use std::sync::MutexGuard;

/// A `Mutex` of std that knows no poison.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// A lock around a value.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The value, which nobody else has.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks the kernel to wake a thread only if one waits.
///
/// What the threads wait for changes under their lock. So a thread that is not counted yet when another notifies has not looked
/// yet, and will see the change.
#[derive(Debug, Default)]
pub struct Condvar {
    changed: sync::Condvar,
    /// How many threads wait. It grows under their lock.
    waiting: AtomicUsize,
}

impl Condvar {
    /// A condition that nobody waits for.
    pub const fn new() -> Self {
        Self { changed: sync::Condvar::new(), waiting: AtomicUsize::new(0) }
    }

    /// Wakes a thread.
    pub fn notify_one(&self) {
        if self.waiting.load(Relaxed) > 0 {
            self.changed.notify_one();
        }
    }

    /// Wakes all threads.
    pub fn notify_all(&self) {
        if self.waiting.load(Relaxed) > 0 {
            self.changed.notify_all();
        }
    }

    /// Gives the lock away until a notification comes, or for no reason.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.waiting.fetch_add(1, Relaxed);
        let guard = self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Relaxed);
        guard
    }

    /// Waits no longer than `patience`.
    pub fn wait_for<'a, T>(&self, guard: MutexGuard<'a, T>, patience: Duration) -> MutexGuard<'a, T> {
        self.waiting.fetch_add(1, Relaxed);
        let (guard, _) = self.changed.wait_timeout(guard, patience).unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Relaxed);
        guard
    }

    /// Waits while `waits` is true, but no longer than `patience`.
    pub fn wait_while_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        waits: impl FnMut(&mut T) -> bool,
        patience: Duration,
    ) -> MutexGuard<'a, T> {
        self.waiting.fetch_add(1, Relaxed);
        let waited = self.changed.wait_timeout_while(guard, patience, waits);
        let (guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Relaxed);
        guard
    }
}
