//! The runs of neighbouring rows that are cheap to read together.

use std::ops::Range;

/// The runs of neighbouring rows that are cheap to read together: shards, row groups, or pieces of some megabytes.
///
/// An order that finishes one block after the other, or a small number at a time, reads and decodes each piece once.
///
/// ```
/// use burn_shards::Blocks;
///
/// let blocks = Blocks { blocks: vec![(400, 50_000_000), (200, 25_000_000)], limit: None };
/// assert_eq!((blocks.len(), blocks.samples()), (2, 600));
/// assert!(blocks.ranges().eq([0..400, 400..600]));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocks {
    /// For each block, in the order of the rows: its number of rows, and the bytes of memory that it takes while they are in use. The bytes
    /// are 0 if rows are read one by one. Blocks may be empty.
    pub blocks: Vec<(usize, u64)>,
    /// The most bytes of blocks that are kept in memory. `None` if blocks are not kept.
    pub limit: Option<u64>,
}

impl Blocks {
    pub(crate) fn of_rows(rows: impl IntoIterator<Item = usize>) -> Self {
        Self { blocks: rows.into_iter().map(|rows| (rows, 0)).collect(), limit: None }
    }

    /// Returns how many blocks there are, empty ones included.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns how many rows all blocks have together.
    pub fn samples(&self) -> usize {
        self.blocks.iter().map(|(rows, _)| rows).sum()
    }

    /// Returns the rows of each block, in order. An empty block has an empty range.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.blocks.iter().scan(0, |end, (rows, _)| {
            let start = *end;
            *end += rows;
            Some(start..*end)
        })
    }
}
