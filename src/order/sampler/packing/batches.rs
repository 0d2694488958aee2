//! The batches of an epoch, window by window.

use super::{best_fit::BestFit, plan::PackingPlan, window::Packing};
use crate::order::draw::LazyMap;
use std::{mem, sync::Arc};

/// The windows of an epoch. One of them is packed at a time.
struct PackedWindows<O> {
    packing: Packing,
    plan: Arc<PackingPlan>,
    order: O,
    epoch: usize,
    fit: BestFit,
    /// How many windows were read from the order.
    passed: usize,
    /// The batches of the window that was read last. A batch that `take` has returned is an empty list.
    batches: Vec<Vec<usize>>,
}

/// Returns the batches of an epoch, by its plan. A skip costs the packing of one window: that of the next batch.
pub(super) fn batches(
    packing: Packing,
    plan: Arc<PackingPlan>,
    order: impl Iterator<Item = usize> + Send + 'static,
    epoch: usize,
) -> impl Iterator<Item = Vec<usize>> + Send + 'static {
    let (fit, numbers) = (BestFit::new(packing.row_tokens), 0..plan.batches());
    let mut windows = PackedWindows { packing, plan, order, epoch, fit, passed: 0, batches: Vec::new() };
    LazyMap::new(numbers, move |number| windows.take(number))
}

impl<O: Iterator<Item = usize>> PackedWindows<O> {
    /// Takes a batch. Its number is higher than those of the batches that were taken before.
    fn take(&mut self, number: usize) -> Vec<usize> {
        let window = self.plan.ends.partition_point(|end| *end <= number);
        if window >= self.passed {
            self.open(window);
        }
        let first = window.checked_sub(1).map_or(0, |before| self.plan.ends[before]);
        self.batches.get_mut(number - first).map(mem::take).unwrap_or_default()
    }

    /// Packs a window that was not read yet.
    fn open(&mut self, window: usize) {
        let skipped = (window - self.passed).saturating_mul(self.packing.window);
        if skipped > 0 {
            self.order.nth(skipped - 1);
        }
        self.passed = window + 1;
        let (left, follows) = (self.plan.left_for(window), self.passed < self.plan.ends.len());
        self.batches = self.packing.pack(left, &mut self.order, follows, (self.epoch, window), &mut self.fit).0;
    }
}
