//! The table of a set: what is known of each page.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt};

/// The bytes of an entry: a mark and a number.
pub(super) const ENTRY: u64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// The page has no place in the cache.
    Empty,
    /// It has a place, and nothing good is there.
    Reserved,
    /// The reader of this number fetches it.
    Claimed(u32),
    /// It is there, with this checksum. Written after the page.
    Good(u32),
}

const CLAIMED: u32 = u32::from_le_bytes(*b"come");
const GOOD: u32 = u32::from_le_bytes(*b"good");

impl Entry {
    fn words(self) -> [u32; 2] {
        match self {
            Self::Empty => [0, 0],
            Self::Reserved => [1, 0],
            Self::Claimed(reader) => [CLAIMED, reader],
            Self::Good(checksum) => [GOOD, checksum],
        }
    }

    fn new(words: [u32; 2]) -> Self {
        match words {
            [0, 0] => Self::Empty,
            [CLAIMED, reader] => Self::Claimed(reader),
            [GOOD, checksum] => Self::Good(checksum),
            _ => Self::Reserved, // also what is damaged: something may be there
        }
    }
}

/// The file of the table.
#[derive(Debug)]
pub(super) struct Table(pub(super) File);

impl Table {
    pub(super) fn read(&self, pages: &Range<u64>) -> io::Result<Vec<Entry>> {
        let mut bytes = vec![0; ((pages.end - pages.start) * ENTRY) as usize];
        self.0.read_exact_at(&mut bytes, pages.start * ENTRY)?;
        let words = bytes.as_chunks::<4>().0.as_chunks::<2>().0;
        Ok(words.iter().map(|words| Entry::new(words.map(u32::from_le_bytes))).collect())
    }

    pub(super) fn entry(&self, page: u64) -> io::Result<Entry> {
        Ok(self.read(&(page..page + 1))?.first().copied().unwrap_or(Entry::Empty))
    }

    /// Writes the same for all these pages.
    pub(super) fn write(&self, pages: &Range<u64>, entry: Entry) -> io::Result<()> {
        let bytes = entry.words().map(u32::to_le_bytes).concat();
        self.0.write_all_at(&bytes.repeat((pages.end - pages.start) as usize), pages.start * ENTRY)
    }
}
