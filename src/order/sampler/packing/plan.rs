//! The plan of an epoch: which window has which batches, and which documents each window passes to the next one.

use super::{best_fit::BestFit, window::Packing};
use crate::order::draw::{PackedList, reserved};

/// Everything that is needed to start an epoch at any of its windows.
#[derive(Debug)]
pub(super) struct PackingPlan {
    /// The number of batches up to the end of each window.
    pub(super) ends: Vec<usize>,
    /// For each window, how many documents it and all earlier windows together got from their predecessors.
    left: Vec<usize>,
    /// The documents that each window got from the previous one, window by window.
    documents: PackedList,
}

impl PackingPlan {
    /// Packs all windows of an epoch's order.
    pub(super) fn new(packing: &Packing, order: &mut dyn Iterator<Item = usize>, windows: usize, epoch: usize) -> Self {
        let mut fit = BestFit::new(packing.row_tokens);
        let mut plan = Self { ends: reserved(windows), left: reserved(windows), documents: PackedList::EMPTY };
        for window in 0..windows {
            plan.left.push(plan.documents.len());
            let (left, follows) = (plan.left_for(window), window + 1 < windows);
            let (batches, left) = packing.pack(left, order, follows, (epoch, window), &mut fit);
            plan.ends.push(plan.batches() + batches.len());
            left.into_iter().for_each(|document| plan.documents.push(document));
        }
        plan
    }

    pub(super) fn batches(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the documents that a window gets from the previous one.
    pub(super) fn left_for(&self, window: usize) -> impl Iterator<Item = usize> {
        let first = window.checked_sub(1).map_or(0, |before| self.left[before]);
        (first..self.left[window]).map(|at| self.documents.get(at))
    }

    /// The plan as numbers: the three lists.
    pub(super) fn words(&self) -> Vec<u64> {
        let lists = self.ends.iter().chain(&self.left).copied().chain(self.documents.iter());
        lists.map(|number| number as u64).collect()
    }

    /// Reads a plan with this number of windows. `None` if the lists have another number of windows.
    pub(super) fn of_words(words: &[u64], windows: usize) -> Option<Self> {
        let numbers: Vec<usize> = words.iter().map(|word| usize::try_from(*word).ok()).collect::<Option<_>>()?;
        let (ends, lists) = numbers.split_at_checked(windows)?;
        let (left, of_plan) = lists.split_at_checked(windows)?;
        let mut documents = PackedList::EMPTY;
        of_plan.iter().for_each(|document| documents.push(*document));
        let is_whole = left.is_sorted() && left.last().is_none_or(|left| *left == documents.len());
        is_whole.then(|| Self { ends: ends.into(), left: left.into(), documents })
    }
}
