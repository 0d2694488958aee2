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
    /// The batches of the last of them, as far as they are still to come.
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
        let (left, follows) = (self.plan.left_for(window), self.windows < self.plan.ends.len());
        let packed = self.packing.pack(left, &mut self.order, follows, (self.epoch, window), &mut self.fit);
        self.batches = packed.0.into_iter();
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
        let window = self.plan.ends.partition_point(|end| *end <= wanted);
        let end = *self.plan.ends.get(window)?;
        if window >= self.windows {
            self.open(window);
        }
        // The batches that are left of a window are its last ones.
        self.batches.nth(self.batches.len().saturating_sub(end - wanted))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.plan.batches() - self.next;
        (left, Some(left))
    }
}
