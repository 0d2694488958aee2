//! A sampler's epochs, one after the other.

use super::Sampler;
use std::sync::Arc;

/// The indices of one pass after the other, each planned when its first index is asked for.
pub(super) struct Passes<S: ?Sized> {
    sampler: Arc<S>,
    dataset_len: usize,
    /// Indices of a pass.
    pass_len: usize,
    /// The sampler's epoch of the next pass.
    epoch: usize,
    /// Passes to come. `usize::MAX` does not end in anyone's life.
    passes: usize,
    current: Box<dyn Iterator<Item = usize> + Send>,
    /// Indices to come of the current pass.
    left: usize,
}

impl<S: Sampler + ?Sized> Passes<S> {
    pub(super) fn new(sampler: Arc<S>, dataset_len: usize, first_epoch: usize, passes: usize) -> Self {
        let pass_len = sampler.len(dataset_len);
        let passes = if pass_len == 0 { 0 } else { passes };
        Self { sampler, dataset_len, pass_len, epoch: first_epoch, passes, current: Box::new([].into_iter()), left: 0 }
    }

    /// Starts the pass after `skipped` others, of those to come.
    fn start(&mut self, skipped: usize) {
        let epoch = self.epoch.wrapping_add(skipped);
        self.current = self.sampler.indices(self.dataset_len, epoch);
        self.left = self.pass_len;
        self.epoch = epoch.wrapping_add(1);
        self.passes -= skipped + 1;
    }
}

impl<S: Sampler + ?Sized> Iterator for Passes<S> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.nth(0)
    }

    /// Whole passes are skipped without being planned.
    fn nth(&mut self, mut n: usize) -> Option<usize> {
        if n >= self.left {
            n -= self.left;
            let skipped = n.checked_div(self.pass_len)?;
            if skipped >= self.passes {
                (self.left, self.passes) = (0, 0);
                return None;
            }
            self.start(skipped);
            n %= self.pass_len;
        }
        self.left -= n + 1;
        self.current.nth(n)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.passes.saturating_mul(self.pass_len).saturating_add(self.left);
        (len, Some(len))
    }
}
