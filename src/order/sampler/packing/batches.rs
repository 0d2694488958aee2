//! The batches of an epoch, window by window.

use super::{best_fit::BestFit, plan::PackingPlan, window::Packing};
use crate::order::draw::LazyMap;
use std::{mem, sync::Arc};

/// Returns the batches of an epoch according to its plan. One window is packed at a time, so a skip costs only the packing of the next
/// batch's window.
pub(super) fn batches(
    packing: Packing,
    plan: Arc<PackingPlan>,
    mut order: impl Iterator<Item = usize> + Send + 'static,
    epoch: usize,
) -> impl Iterator<Item = Vec<usize>> + Send + 'static {
    let mut fit = BestFit::new(packing.row_tokens);
    // How many windows were read from the order, and the batches of the last one. A batch that was returned is an empty list.
    let (mut passed, mut open) = (0, Vec::new());
    LazyMap::new(plan.batches(), move |number| {
        let window = plan.ends.partition_point(|end| *end <= number);
        if window >= passed {
            let skipped = (window - passed).saturating_mul(packing.window);
            if skipped > 0 {
                order.nth(skipped - 1);
            }
            passed = window + 1;
            let (left, follows) = (plan.left_for(window), passed < plan.ends.len());
            open = packing.pack(left, &mut order, follows, (epoch, window), &mut fit).0;
        }
        let first = window.checked_sub(1).map_or(0, |before| plan.ends[before]);
        Some(open.get_mut(number - first).map(mem::take).unwrap_or_default())
    })
}
