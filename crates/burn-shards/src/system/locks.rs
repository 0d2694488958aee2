//! The locks of std, without poisoning. Panics of user code are caught and reported where they occur, so poisoning is not needed.
//!
//! These locks keep their whole state in themselves. Locks with a global table of waiting threads, such as those of `parking_lot`, do not
//! survive a fork: the child inherits entries of threads that it does not have.

use std::{
    sync::{
        self, PoisonError, TryLockError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

pub use std::sync::MutexGuard;

/// std's `Mutex`, without poisoning.
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

    /// The value, which is borrowed exclusively.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A condition variable that calls the kernel only if a thread waits.
///
/// The condition changes only under the lock. So if a thread is not counted yet when another notifies, it has not checked the condition
/// yet, and will see the change.
#[derive(Debug, Default)]
pub struct Condvar {
    changed: sync::Condvar,
    /// How many threads wait. It is incremented under the lock.
    waiting: AtomicUsize,
}

impl Condvar {
    /// A condition variable without waiting threads.
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

    /// Releases the lock and waits for a notification. It may also wake up spuriously.
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
