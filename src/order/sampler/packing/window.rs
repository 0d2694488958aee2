//! A window of an order: its documents are packed into rows, and whole batches of rows are cut out.

use super::{
    best_fit::{BestFit, Packed},
    lengths::{Lengths, TooLong},
};
use crate::rng::{KeyedRng, Purpose};
use rand::seq::SliceRandom;

/// Not in a batch of this window.
const CARRIED: u32 = u32::MAX;

/// How documents become batches.
#[derive(Debug, Clone)]
pub(super) struct Packing {
    pub(super) lengths: Lengths,
    pub(super) row_tokens: u32,
    pub(super) batch_size: usize,
    /// The documents of the order that are packed together.
    pub(super) window: usize,
    pub(super) too_long: TooLong,
}

/// The documents of a window.
pub(super) struct Window {
    documents: Vec<usize>,
    packed: Packed,
    /// The rows of the batches, and those that go into the next window.
    whole: Vec<u32>,
    carried: Vec<u32>,
}

impl Packing {
    /// Returns how many tokens of a document are packed: 0 if it comes in no batch.
    fn length(&self, lengths: &[u32], document: usize) -> u32 {
        // The loader reports a document that the dataset does not have. Here it takes a row.
        let length = lengths.get(document).copied().unwrap_or(self.row_tokens);
        let dropped = length > self.row_tokens && self.too_long == TooLong::Drop;
        if dropped { 0 } else { length.min(self.row_tokens) }
    }

    /// Packs the documents that the window before left, and the next ones of the order. The last window leaves none.
    pub(super) fn pack(
        &self,
        left: impl Iterator<Item = usize>,
        order: &mut dyn Iterator<Item = usize>,
        is_last: bool,
        fit: &mut BestFit,
    ) -> Window {
        let mut documents: Vec<usize> = left.chain(order.take(self.window)).collect();
        // The table is larger than any cache. A loop that does nothing else has several reads on their way at once.
        let all = self.lengths.all();
        let mut lengths: Vec<u32> = documents.iter().map(|document| self.length(all, *document)).collect();
        let mut each = lengths.iter();
        documents.retain(|_| each.next().is_some_and(|length| *length > 0));
        lengths.retain(|length| *length > 0);
        let packed = fit.pack(&lengths);
        let mut whole: Vec<u32> = (0..packed.free.len() as u32).collect();
        let left = if is_last { 0 } else { whole.len() % self.batch_size };
        whole.sort_unstable_by_key(|row| (packed.free[*row as usize], *row));
        let carried = whole.split_off(whole.len() - left);
        Window { documents, packed, whole, carried }
    }
}

impl Window {
    /// The number of rows in batches.
    pub(super) fn rows(&self) -> usize {
        self.whole.len()
    }

    /// Returns the documents that the next window gets.
    pub(super) fn left(&self) -> impl Iterator<Item = usize> {
        let mut is_carried = vec![false; self.packed.free.len()];
        self.carried.iter().for_each(|row| is_carried[*row as usize] = true);
        let own = self.packed.documents.iter().filter(move |(_, row)| is_carried[*row as usize]);
        own.map(|(place, _)| self.documents[*place as usize])
    }

    /// Returns the batches. The documents of each come from the longest to the shortest.
    pub(super) fn batches(mut self, batch_size: usize, epoch: usize, number: usize) -> Vec<Vec<usize>> {
        self.whole.shuffle(&mut KeyedRng::new(Purpose::Packing, 0, epoch, number));
        let mut batch_of = vec![CARRIED; self.packed.free.len()];
        self.whole.iter().enumerate().for_each(|(at, row)| batch_of[*row as usize] = (at / batch_size) as u32);
        let mut batches = vec![Vec::new(); self.whole.len().div_ceil(batch_size)];
        for (place, row) in self.packed.documents {
            if batch_of[row as usize] != CARRIED {
                batches[batch_of[row as usize] as usize].push(self.documents[place as usize]);
            }
        }
        batches
    }
}
