//! The batches of an epoch, window by window.

use super::{best_fit::BestFit, plan::Plan, window::Packing};
use crate::order::draw::LazyMap;
use std::{mem, sync::Arc};

/// The windows of an epoch, of which the newest is packed.
struct Windows<O> {
    packing: Packing,
    plan: Arc<Plan>,
    order: O,
    epoch: usize,
    fit: BestFit,
    /// The windows that the order is through.
    passed: usize,
    /// The batches of the last of them. Those that were taken are empty.
    batches: Vec<Vec<usize>>,
}

/// Returns the batches of an epoch, by its plan. To skip is to pack the window of the next batch.
pub(super) fn batches(
    packing: Packing,
    plan: Arc<Plan>,
    order: impl Iterator<Item = usize> + Send + 'static,
    epoch: usize,
) -> impl Iterator<Item = Vec<usize>> + Send + 'static {
    let (fit, numbers) = (BestFit::new(packing.row_tokens), 0..plan.batches());
    let mut windows = Windows { packing, plan, order, epoch, fit, passed: 0, batches: Vec::new() };
    LazyMap::new(numbers, move |number| windows.take(number))
}

impl<O: Iterator<Item = usize>> Windows<O> {
    /// Takes a batch that is behind those that were taken before.
    fn take(&mut self, number: usize) -> Vec<usize> {
        let window = self.plan.ends.partition_point(|end| *end <= number);
        if window >= self.passed {
            self.open(window);
        }
        let first = window.checked_sub(1).map_or(0, |before| self.plan.ends[before]);
        self.batches.get_mut(number - first).map(mem::take).unwrap_or_default()
    }

    /// Packs a window that is not behind the order.
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
