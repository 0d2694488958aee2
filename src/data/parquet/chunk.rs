//! The values of a leaf in a row group, and the pages that they are in.

use super::{notes::Note, offsets::Page};
use parquet::basic::CompressionCodec;
use std::{ops::Range, sync::OnceLock};

/// The values of a leaf in a row group.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) codec: CompressionCodec,
    /// Where it lies in its object, with the dictionary. It does lie in it.
    pub(super) range: Range<u64>,
    /// How many values it claims to have, nulls included.
    pub(super) values: u64,
    /// How many bytes it claims to have without compression.
    pub(super) size: u64,
    /// Its pages. If it has none, all of it is one piece.
    pub(super) pages: Vec<Page>,
    /// What is known of each page, if its values may be read one by one.
    pub(super) notes: Vec<OnceLock<Note>>,
}

impl Chunk {
    /// The page that has a row of the group, and the rows of that page.
    pub(super) fn page(&self, row: usize, rows: usize) -> (usize, Range<usize>) {
        let page = self.pages.partition_point(|page| page.first_row <= row as u64).saturating_sub(1);
        (page, self.rows(page, rows))
    }

    /// The rows of a page, in a group of `rows` rows.
    pub(super) fn rows(&self, page: usize, rows: usize) -> Range<usize> {
        let first = |page: usize| self.pages.get(page).map(|page| page.first_row as usize);
        first(page).unwrap_or(0)..first(page + 1).unwrap_or(rows)
    }

    /// Where the dictionary is, if it lies before the pages of the offset index.
    pub(super) fn dictionary(&self) -> Option<Range<u64>> {
        self.pages.first().map(|page| self.range.start..page.start).filter(|range| !range.is_empty())
    }
}
