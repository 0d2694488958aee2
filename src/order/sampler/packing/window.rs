//! A window of an order: its documents are packed into rows, and whole batches of rows are cut out.

use super::{best_fit::BestFit, too_long::TooLong};
use crate::order::draw::Fingerprint;
use burn_augment::{KeyedRng, for_loader::Purpose};
use rand::seq::SliceRandom;
use std::sync::Arc;

/// How documents become batches.
#[derive(Clone, derive_more::Debug)]
#[debug(
    "Packing {{ lengths: {fingerprint:?}, row_tokens: {row_tokens}, batch_size: {batch_size}, window: {window}, too_long: {too_long:?} }}"
)]
pub(super) struct Packing {
    /// The number of tokens of each document.
    lengths: Arc<dyn AsRef<[u32]> + Send + Sync>,
    #[expect(dead_code, reason = "it is in the `Debug` text, which stands for the sampler")]
    fingerprint: Fingerprint,
    /// The number of documents with tokens, and of those with more tokens than a row.
    pub(super) filled: usize,
    pub(super) too_many: usize,
    /// The shortest length that is not 0; at most the length of a row.
    pub(super) shortest: u32,
    pub(super) row_tokens: u32,
    pub(super) batch_size: usize,
    /// The number of documents of the order that are packed together.
    pub(super) window: usize,
    pub(super) too_long: TooLong,
}

impl Packing {
    /// Prepares to pack documents of these lengths. A document that is too long is an error.
    pub(super) fn new(
        lengths: impl AsRef<[u32]> + Send + Sync + 'static,
        row_tokens: u32,
        batch_size: usize,
        window: usize,
    ) -> Self {
        let (mut filled, mut too_many, mut shortest) = (0, 0, row_tokens);
        for &length in lengths.as_ref() {
            filled += usize::from(length > 0);
            too_many += usize::from(length > row_tokens);
            shortest = shortest.min(length.wrapping_sub(1)); // 0 becomes the largest number
        }
        let shortest = shortest.saturating_add(1).min(row_tokens);
        let (fingerprint, lengths) = (Fingerprint::of_table(lengths.as_ref()), Arc::new(lengths));
        let too_long = TooLong::Error;
        Self { lengths, fingerprint, filled, too_many, shortest, row_tokens, batch_size, window, too_long }
    }

    /// The number of tokens of each document.
    pub(super) fn lengths(&self) -> &[u32] {
        (*self.lengths).as_ref()
    }

    /// Returns how many tokens of a document are packed: 0 if it is in no batch.
    fn length(&self, lengths: &[u32], document: usize) -> u32 {
        // The loader reports an index that is not in the dataset. Here it takes a row.
        let length = lengths.get(document).copied().unwrap_or(self.row_tokens);
        let dropped = length > self.row_tokens && self.too_long == TooLong::Drop;
        if dropped { 0 } else { length.min(self.row_tokens) }
    }

    /// Packs the documents left from the previous window, and the next ones of the order. Returns the batches, and the documents that are
    /// left over; none if this is the last window. The documents of a batch are sorted from the longest to the shortest. `key` is the epoch
    /// and the number of the window.
    pub(super) fn pack(
        &self,
        left: impl Iterator<Item = usize>,
        order: &mut dyn Iterator<Item = usize>,
        follows: bool,
        key: (usize, usize),
        fit: &mut BestFit,
    ) -> (Vec<Vec<usize>>, Vec<usize>) {
        let documents: Vec<usize> = left.chain(order.take(self.window)).collect();
        // The table is larger than any cache. In a loop that does nothing else, the CPU overlaps several reads.
        let all = self.lengths();
        let lengths: Vec<u32> = documents.iter().map(|document| self.length(all, *document)).collect();
        let (placed, free) = fit.pack(&lengths);
        let mut rows: Vec<usize> = (0..free.len()).collect();
        rows.sort_unstable_by_key(|row| (free[*row], *row));
        let left = if follows { rows.len() % self.batch_size } else { 0 };
        let whole = rows.len() - left;
        rows[..whole].shuffle(&mut KeyedRng::new(Purpose::Packing, 0, key.0, key.1));
        let mut place_of = vec![0; rows.len()];
        rows.iter().enumerate().for_each(|(place, row)| place_of[*row] = place);
        let count = whole.div_ceil(self.batch_size) + 1;
        let mut batches: Vec<Vec<usize>> =
            (0..count).map(|_| Vec::with_capacity(documents.len() / count * 5 / 4)).collect();
        for (document, row) in placed {
            let place = place_of[row as usize];
            let batch = if place < whole { place / self.batch_size } else { count - 1 };
            batches[batch].push(documents[document as usize]);
        }
        let left = batches.pop().unwrap_or_default();
        (batches, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_summed_up() {
        let lengths = |lengths: &'static [u32], row| {
            let Packing { filled, too_many, shortest, .. } = Packing::new(lengths, row, 1, 1);
            (filled, too_many, shortest)
        };
        assert_eq!(lengths(&[3, 0, 9, 8, 0], 8), (3, 1, 3));
        assert_eq!(lengths(&[u32::MAX, 10], 8), (2, 2, 8));
        assert_eq!(lengths(&[0, 0], 8), (0, 0, 8));
        assert_eq!(lengths(&[], 8), (0, 0, 8));
        assert_eq!(lengths(&[8, 1], 8), (2, 0, 1));
    }
}
