//! The lengths of all documents, and what is done with a document that is too long.

use crate::order::draw::Fingerprint;
use std::{fmt, sync::Arc};

/// What is done with a document that has more tokens than a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TooLong {
    /// The document is an error.
    #[default]
    Error,
    /// The first tokens of the document are a whole row, and the others are left out.
    Cut,
    /// The document comes in no batch. The log has a warning with the number of such documents, and the statistics count them
    /// (`left_out`).
    Drop,
}

/// The number of tokens of each document, with counts of all documents.
#[derive(Clone)]
pub(super) struct DocumentLengths {
    table: Arc<dyn AsRef<[u32]> + Send + Sync>,
    fingerprint: Fingerprint,
    /// The documents with tokens, and those with more tokens than a row.
    pub(super) filled: usize,
    pub(super) too_long: usize,
    /// The shortest length that is not 0. The length of a row if none is shorter.
    pub(super) shortest: u32,
}

impl DocumentLengths {
    pub(super) fn new(table: impl AsRef<[u32]> + Send + Sync + 'static, row_tokens: u32) -> Self {
        let (mut filled, mut too_long, mut shortest) = (0, 0, row_tokens);
        for &length in table.as_ref() {
            filled += usize::from(length > 0);
            too_long += usize::from(length > row_tokens);
            shortest = shortest.min(length.wrapping_sub(1)); // 0 becomes the largest number
        }
        let shortest = shortest.saturating_add(1).min(row_tokens);
        Self { fingerprint: Fingerprint::of_table(table.as_ref()), table: Arc::new(table), filled, too_long, shortest }
    }

    pub(super) fn all(&self) -> &[u32] {
        (*self.table).as_ref()
    }
}

impl fmt::Debug for DocumentLengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fingerprint.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_summed_up() {
        let lengths = |lengths: &'static [u32], row| {
            let DocumentLengths { filled, too_long, shortest, .. } = DocumentLengths::new(lengths, row);
            (filled, too_long, shortest)
        };
        assert_eq!(lengths(&[3, 0, 9, 8, 0], 8), (3, 1, 3));
        assert_eq!(lengths(&[u32::MAX, 10], 8), (2, 2, 8));
        assert_eq!(lengths(&[0, 0], 8), (0, 0, 8));
        assert_eq!(lengths(&[], 8), (0, 0, 8));
        assert_eq!(lengths(&[8, 1], 8), (2, 0, 1));
    }
}
