//! Whether a dataset still has the length that its loader was built for.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The length of a dataset when its loader was built, and now.
#[derive(derive_more::Debug)]
#[debug("{built}")]
pub(crate) struct FrozenLen {
    built: usize,
    /// The length that was found last.
    found: AtomicUsize,
    now: Box<dyn Fn() -> usize + Send + Sync>,
}

impl FrozenLen {
    pub(super) fn new(built: usize, now: impl Fn() -> usize + Send + Sync + 'static) -> Self {
        Self { built, found: AtomicUsize::new(built), now: Box::new(now) }
    }

    /// Warns if the dataset has another length than at the last epoch of any copy of the loader.
    pub(super) fn check(&self) {
        let (now, built) = ((self.now)(), self.built);
        if self.found.swap(now, Relaxed) != now && now != built {
            log::warn!(
                "burn-pinned: the dataset has another length now: {now} samples. The loader goes on with the {built} of when it \
                 was built. Build another one to read what is new"
            );
        }
    }
}
