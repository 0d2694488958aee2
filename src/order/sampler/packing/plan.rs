//! The plan of an epoch: which window has which batches, and which documents each window leaves to the next one.

use super::{best_fit::BestFit, window::Packing};
use crate::order::draw::PackedList;

/// What there is to know of the windows of an epoch to begin with any of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The number of batches up to the end of each window.
    ends: Vec<usize>,
    /// The number of documents that were left up to each window, itself included.
    left: Vec<usize>,
    /// The documents that windows were left, one window after the other.
    documents: PackedList,
}

impl Plan {
    /// Packs all windows of an order of `len` documents.
    pub(super) fn new(packing: &Packing, order: &mut dyn Iterator<Item = usize>, len: usize) -> Self {
        let windows = Self::windows_of(packing, len);
        let (mut fit, mut batches) = (BestFit::new(packing.row_tokens), 0);
        let (mut ends, mut left) = (Vec::with_capacity(windows), Vec::with_capacity(windows));
        let mut documents = PackedList::counting(0);
        for window in 0..windows {
            left.push(documents.len());
            let first = left[window.saturating_sub(1)];
            let given = (first..documents.len()).map(|at| documents.get(at));
            let packed = packing.pack(given, order, window + 1 == windows, &mut fit);
            batches += packed.rows().div_ceil(packing.batch_size);
            ends.push(batches);
            packed.left().for_each(|document| documents.push(document));
        }
        Self { ends, left, documents }
    }

    /// Returns how many windows an order of `len` documents has.
    pub(super) fn windows_of(packing: &Packing, len: usize) -> usize {
        len.div_ceil(packing.window)
    }

    pub(super) fn windows(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn batches(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the window that has a batch.
    pub(super) fn window_of(&self, batch: usize) -> Option<usize> {
        let window = self.ends.partition_point(|end| *end <= batch);
        (window < self.windows()).then_some(window)
    }

    /// Returns the number of batches up to the end of a window.
    pub(super) fn end_of(&self, window: usize) -> usize {
        self.ends[window]
    }

    /// Returns the documents that a window gets from the one before.
    pub(super) fn left_for(&self, window: usize) -> impl Iterator<Item = usize> {
        let first = window.checked_sub(1).map_or(0, |before| self.left[before]);
        (first..self.left[window]).map(|at| self.documents.get(at))
    }

    /// The plan as numbers: of windows, of documents that were left, and then the three lists.
    pub(super) fn words(&self) -> Vec<u64> {
        let numbers = [self.windows(), self.documents.len()].into_iter();
        let lists = self.ends.iter().chain(&self.left).copied().chain(self.documents.iter());
        numbers.chain(lists).map(|number| number as u64).collect()
    }

    /// Reads a plan of this number of windows. `None` if it is of another number, or cannot be a plan.
    pub(super) fn of_words(words: &[u64], windows: usize) -> Option<Self> {
        let ([saved, documents], lists) = words.split_first_chunk()?;
        let (ends, lists) = lists.split_at_checked(windows)?;
        let (left, list) = lists.split_at_checked(windows)?;
        let is_whole = *saved == windows as u64 && *documents == list.len() as u64 && left.last() <= Some(documents);
        if !is_whole || !ends.is_sorted() || !left.is_sorted() {
            return None;
        }
        let numbers = |words: &[u64]| -> Option<Vec<usize>> {
            words.iter().map(|word| usize::try_from(*word).ok()).collect::<Option<_>>()
        };
        Some(Self { ends: numbers(ends)?, left: numbers(left)?, documents: PackedList::of(numbers(list)?) })
    }
}
