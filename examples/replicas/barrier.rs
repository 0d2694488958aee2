//! A barrier that can be broken. A device that fails wakes the others, so none of them waits forever.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Locks, even if a thread panicked while it held the lock: the other threads end too.
pub(crate) fn locked<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Another device has ended the training.
#[derive(Debug, thiserror::Error)]
#[error("another device has ended the training")]
pub(crate) struct Broken;

#[derive(Default)]
struct State {
    waiting: usize,
    /// How often all devices have met.
    met: u64,
    broken: bool,
}

pub(crate) struct Barrier {
    ranks: usize,
    state: Mutex<State>,
    changed: Condvar,
}

impl Barrier {
    pub(crate) fn new(ranks: usize) -> Self {
        Self { ranks, state: Mutex::default(), changed: Condvar::new() }
    }

    pub(crate) fn ranks(&self) -> usize {
        self.ranks
    }

    /// Waits until all devices have called it equally often.
    ///
    /// # Errors
    /// [`Broken`], at once, if any device has called [`break_up`](Self::break_up).
    pub(crate) fn wait(&self) -> Result<(), Broken> {
        let mut state = locked(&self.state);
        let met = state.met;
        state.waiting += 1;
        if state.waiting == self.ranks && !state.broken {
            (state.waiting, state.met) = (0, met + 1);
            self.changed.notify_all();
        }
        let waited = self.changed.wait_while(state, |state| state.met == met && !state.broken);
        let state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.met == met { Err(Broken) } else { Ok(()) }
    }

    /// Ends all current and later waits.
    pub(crate) fn break_up(&self) {
        locked(&self.state).broken = true;
        self.changed.notify_all();
    }
}
