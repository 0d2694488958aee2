//! The values of a leaf in a row group, and the pages that they are in.

use super::{notes::Note, offsets::PagePlace, writer::Writer};
use crate::parquet::columns::Leaf;
use parquet::basic::{CompressionCodec, Type as Stored};
use std::{ops::Range, sync::OnceLock};

/// The values of a leaf in a row group.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) codec: CompressionCodec,
    pub(crate) writer: Writer,
    /// Where the chunk lies in its object, with the dictionary. The range is known to be inside the object.
    pub(crate) range: Range<u64>,
    /// How many values the chunk claims to have, including nulls.
    pub(crate) values: u64,
    /// How many uncompressed bytes the chunk claims to have.
    pub(crate) size: u64,
    /// The pages of the offset index. If there are none, the whole chunk is one piece.
    pub(crate) pages: Vec<PagePlace>,
    /// What is known about each page, if its values may be read one by one.
    pub(crate) notes: Vec<OnceLock<Note>>,
}

impl Chunk {
    /// The page that has a row of the group, and the rows of that page.
    pub(crate) fn page(&self, row: usize, rows: usize) -> (usize, Range<usize>) {
        let page = self.pages.partition_point(|page| page.first_row <= row as u64).saturating_sub(1);
        (page, self.rows(page, rows))
    }

    /// The rows of a page, in a group of `rows` rows.
    pub(crate) fn rows(&self, page: usize, rows: usize) -> Range<usize> {
        let first = |page: usize| self.pages.get(page).map(|page| page.first_row as usize);
        first(page).unwrap_or(0)..first(page + 1).unwrap_or(rows)
    }

    /// About how many bytes the decoded chunk takes.
    pub(crate) fn decoded(&self, leaf: &Leaf, rows: usize) -> u64 {
        let strings = match leaf.is.physical_type() {
            Stored::BYTE_ARRAY | Stored::FIXED_LEN_BYTE_ARRAY => self.size,
            _ => 0,
        };
        let starts = if leaf.reps > 0 { rows as u64 * 4 } else { 0 };
        strings.saturating_add(self.values.saturating_mul(leaf.kept())).saturating_add(starts)
    }

    /// Where the dictionary is, if it lies before the pages of the offset index.
    pub(crate) fn dictionary(&self) -> Option<Range<u64>> {
        self.pages.first().map(|page| self.range.start..page.start).filter(|range| !range.is_empty())
    }
}
