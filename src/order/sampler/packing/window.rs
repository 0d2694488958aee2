//! A window of an order: its documents are packed into rows, and whole batches of rows are cut out.

use super::{
    best_fit::BestFit,
    lengths::{DocumentLengths, TooLong},
};
use crate::rng::{KeyedRng, Purpose};
use rand::seq::SliceRandom;

/// How documents become batches.
#[derive(Debug, Clone)]
pub(super) struct Packing {
    pub(super) lengths: DocumentLengths,
    pub(super) row_tokens: u32,
    pub(super) batch_size: usize,
    /// The documents of the order that are packed together.
    pub(super) window: usize,
    pub(super) too_long: TooLong,
}

impl Packing {
    /// Returns how many tokens of a document are packed: 0 if it comes in no batch.
    fn length(&self, lengths: &[u32], document: usize) -> u32 {
        // The loader reports a document that the dataset does not have. Here it takes a row.
        let length = lengths.get(document).copied().unwrap_or(self.row_tokens);
        let dropped = length > self.row_tokens && self.too_long == TooLong::Drop;
        if dropped { 0 } else { length.min(self.row_tokens) }
    }

    /// Packs the documents that the window before left, and the next ones of the order. Returns the batches, and the
    /// documents that are left, which are none if no window follows. The documents of a batch come from the longest to the
    /// shortest. `key` is the epoch and the number of the window.
    pub(super) fn pack(
        &self,
        left: impl Iterator<Item = usize>,
        order: &mut dyn Iterator<Item = usize>,
        follows: bool,
        key: (usize, usize),
        fit: &mut BestFit,
    ) -> (Vec<Vec<usize>>, Vec<usize>) {
        let documents: Vec<usize> = left.chain(order.take(self.window)).collect();
        // The table is larger than any cache. A loop that does nothing else has several reads on their way at once.
        let all = self.lengths.all();
        let lengths: Vec<u32> = documents.iter().map(|document| self.length(all, *document)).collect();
        let packed = fit.pack(&lengths);
        let mut rows: Vec<usize> = (0..packed.free.len()).collect();
        rows.sort_unstable_by_key(|row| (packed.free[*row], *row));
        let left = if follows { rows.len() % self.batch_size } else { 0 };
        let whole = rows.len() - left;
        rows[..whole].shuffle(&mut KeyedRng::new(Purpose::Packing, 0, key.0, key.1));
        let mut place_of = vec![0; rows.len()];
        rows.iter().enumerate().for_each(|(place, row)| place_of[*row] = place);
        let count = whole.div_ceil(self.batch_size) + 1;
        let mut batches: Vec<Vec<usize>> =
            (0..count).map(|_| Vec::with_capacity(documents.len() / count * 5 / 4)).collect();
        for (document, row) in packed.documents {
            let place = place_of[row as usize];
            let batch = if place < whole { place / self.batch_size } else { count - 1 };
            batches[batch].push(documents[document as usize]);
        }
        let left = batches.pop().unwrap_or_default();
        (batches, left)
    }
}
