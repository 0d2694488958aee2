//! The batches of an epoch, window by window.

use super::{best_fit::BestFit, plan::Plan, window::Packing};
use std::{sync::Arc, vec};

/// The batches of an epoch, by its plan. To skip is to pack the window of the next batch.
pub(super) struct Batches {
    packing: Packing,
    plan: Arc<Plan>,
    order: Box<dyn Iterator<Item = usize> + Send>,
    epoch: usize,
    fit: BestFit,
    /// The windows that the order is through.
    windows: usize,
    /// The batches of the window before, as far as they are still to come.
    batches: vec::IntoIter<Vec<usize>>,
    next: usize,
}

impl Batches {
    pub(super) fn new(
        packing: Packing,
        plan: Arc<Plan>,
        order: Box<dyn Iterator<Item = usize> + Send>,
        epoch: usize,
    ) -> Self {
        let (fit, batches) = (BestFit::new(packing.row_tokens), Vec::new().into_iter());
        Self { packing, plan, order, epoch, fit, windows: 0, batches, next: 0 }
    }

    /// Packs a window that is not behind the order.
    fn open(&mut self, window: usize) {
        let skipped = (window - self.windows).saturating_mul(self.packing.window);
        if skipped > 0 {
            self.order.nth(skipped - 1);
        }
        self.windows = window + 1;
        let is_last = self.windows == self.plan.windows();
        let packed = self.packing.pack(self.plan.left_for(window), &mut self.order, is_last, &mut self.fit);
        self.batches = packed.batches(self.packing.batch_size, self.epoch, window).into_iter();
    }
}

impl Iterator for Batches {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        self.nth(0)
    }

    fn nth(&mut self, n: usize) -> Option<Vec<usize>> {
        let wanted = self.next.saturating_add(n);
        self.next = wanted.saturating_add(1).min(self.plan.batches());
        let window = self.plan.window_of(wanted)?;
        if window >= self.windows {
            self.open(window);
        }
        // The batches that are left of a window are its last ones.
        let first = self.plan.end_of(window).saturating_sub(self.batches.len());
        self.batches.nth(wanted.saturating_sub(first))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.plan.batches() - self.next;
        (left, Some(left))
    }
}
