//! Where each value of a page is, for pages with plainly stored values: a length and then the bytes.

use super::{
    cells,
    header::{PageHeader, PageKind},
    levels::levels,
    offsets::PagePlace,
};
use crate::{
    parquet::{columns::Leaf, fault::PartError},
    source::cell::Cell,
    store::Objects,
};
use bytes::Buf;
use parquet::basic::Encoding;
use std::{borrow::Cow, ops::Range};

/// The bytes of the length before each value.
const PREFIX: u64 = 4;
/// The bytes at the start of a page that are read to note it. Later lengths are read one by one.
const PAGE_HEAD: u64 = 16 << 10;

/// A page with more rows than this, and with more rows than bytes, is not noted, because a run of nulls takes only a few bytes for any
/// number of rows.
const MOST_ROWS: usize = 1 << 20;
/// The most bytes of a note for each byte of its page. A page whose note would be larger, because of its many nulls, is not noted.
const NOTE_BYTES_EACH: u64 = 8;

/// What is known about a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Note {
    /// The values of the page must be decoded.
    Decoded,
    /// All values of the page are nulls, of this definition level.
    Nulls(u8),
    Plain {
        /// Where the first value lies in the object.
        first: u64,
        /// Where each row's value ends, from `first` on. A null has no bytes.
        ends: Box<[u32]>,
        /// The definition levels. Empty if there are no nulls.
        defs: Box<[u8]>,
    },
}

impl Note {
    /// Finds the values of a page. If `bytes` are given, the page was decoded before, so its checksum was checked. Otherwise only the
    /// needed bytes are read: all of them, if there is a checksum.
    pub(crate) fn find(
        objects: &Objects,
        object: usize,
        leaf: &Leaf,
        page: &PagePlace,
        rows: usize,
        bytes: Option<&[u8]>,
    ) -> Result<Self, PartError> {
        let range = page.range();
        if let Some(bytes) = bytes {
            return Self::find_in(leaf, page, rows, bytes, |_| Err(cut()));
        }
        let mean = u64::from(page.length) / rows.max(1) as u64;
        if mean > PAGE_HEAD && u64::from(page.length) > PAGE_HEAD {
            let head = objects.read(object, range.start..range.start + PAGE_HEAD)?;
            let length = |at: u64| {
                let bytes = objects.read(object, range.start + at..range.start + at + PREFIX)?;
                bytes.first_chunk().copied().ok_or_else(cut)
            };
            // In the rare case that the header and the levels are longer than the head, the whole page is read.
            let unchecked = PageHeader::read_start(&head).is_ok_and(|header| header.checksum.is_none());
            if unchecked && let Ok(note) = Self::find_in(leaf, page, rows, &head, length) {
                return Ok(note);
            }
        }
        let bytes = objects.samples(object, range, rows as u64)?;
        let header = PageHeader::read(&bytes)?;
        header.check(&bytes[header.length..header.length + header.stored])?;
        Self::find_in(leaf, page, rows, &bytes, |_| Err(cut()))
    }

    /// `head` has the first bytes of the page, and `length` reads a length at a later place.
    fn find_in(
        leaf: &Leaf,
        page: &PagePlace,
        rows: usize,
        head: &[u8],
        length: impl Fn(u64) -> Result<[u8; 4], PartError>,
    ) -> Result<Self, PartError> {
        let header = PageHeader::read_start(head)?;
        let end = header.length as u64 + header.stored as u64;
        if end > page.length.into() {
            return Err(cut());
        }
        let body = header.length;
        let claimed = match header.page {
            PageKind::V2 { nulls, .. } => Some(nulls as usize),
            _ => None,
        };
        let (values, levels_at, levels_length) = match header.page {
            PageKind::V1 { values, encoding: Encoding::PLAIN, .. } if leaf.full == 0 => (values, body, 0),
            PageKind::V1 { values, encoding: Encoding::PLAIN, defs: Encoding::RLE, .. } => {
                let length = head.get(body..).and_then(|rest| rest.first_chunk()).ok_or_else(cut)?;
                (values, body + PREFIX as usize, u32::from_le_bytes(*length) as usize)
            }
            PageKind::V2 { values, encoding: Encoding::PLAIN, defs, reps: 0, .. } => (values, body, defs as usize),
            _ => return Ok(Self::Decoded),
        };
        if rows > MOST_ROWS.max(page.length as usize) {
            return Ok(Self::Decoded);
        }
        if header.size != header.stored || values as usize != rows {
            return Err(PartError::damaged("a page has other sizes than its file says"));
        }
        let first = levels_at.checked_add(levels_length).ok_or_else(cut)?;
        let defs = match leaf.full {
            0 => Vec::new(),
            full => levels(head.get(levels_at..first).ok_or_else(cut)?, full, rows)?,
        };
        let nulls = defs.iter().filter(|def| **def < leaf.full).count();
        if claimed.is_some_and(|claimed| claimed != nulls) {
            return Ok(Self::Decoded); // the decoder returns the error
        }
        match defs.first() {
            Some(first) if nulls == rows && defs.iter().all(|def| def == first) => return Ok(Self::Nulls(*first)),
            _ if bytes(rows, nulls > 0) > NOTE_BYTES_EACH * u64::from(page.length) => return Ok(Self::Decoded),
            _ => {}
        }
        let prefix = |at: u64| match usize::try_from(at).ok().and_then(|at| head.get(at..)?.first_chunk()) {
            Some(bytes) => Ok(u32::from_le_bytes(*bytes)),
            None if at + PREFIX <= end => length(at).map(u32::from_le_bytes),
            None => Err(cut()),
        };
        let (first, mut at) = (first as u64, first as u64);
        let mut ends = Vec::with_capacity(rows.min(page.length as usize));
        for row in 0..rows {
            if defs.get(row).is_none_or(|def| *def == leaf.full) {
                at += PREFIX + u64::from(prefix(at)?);
                if at > end {
                    return Err(cut());
                }
            }
            ends.push((at - first) as u32);
        }
        let defs = if nulls > 0 { defs.into() } else { Box::default() };
        Ok(Self::Plain { first: page.start + first, ends: ends.into(), defs })
    }

    /// Where one value of the page is, with the length before it. `None` if it is null, or must be decoded.
    pub(crate) fn place(&self, leaf: &Leaf, row: usize) -> Option<Range<u64>> {
        let Self::Plain { first, ends, defs } = self else { return None };
        if defs.get(row).is_some_and(|def| *def < leaf.full) {
            return None;
        }
        let start = row.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
        Some(first + u64::from(start)..first + u64::from(*ends.get(row)?))
    }

    /// Reads one value of the page: exactly its bytes. `None` if it must be decoded.
    pub(crate) fn read(
        &self,
        objects: &Objects,
        object: usize,
        leaf: &Leaf,
        row: usize,
    ) -> Result<Option<(u8, Cell)>, PartError> {
        let def = match self {
            Self::Decoded => return Ok(None),
            Self::Nulls(def) => *def,
            Self::Plain { defs, .. } => defs.get(row).copied().unwrap_or(leaf.full),
        };
        if def < leaf.full {
            return Ok(Some((def, Cell::Null)));
        }
        let mut bytes = objects.samples(object, self.place(leaf, row).ok_or_else(cut)?, 1)?;
        let length = bytes.len().checked_sub(PREFIX as usize);
        match (bytes.first_chunk(), length) {
            (Some(prefix), Some(length)) if u32::from_le_bytes(*prefix) as usize == length => {}
            _ => return Err(PartError::damaged("a value has another length than before: the file has changed")),
        }
        bytes.drain(..PREFIX as usize);
        Ok(Some((def, cells::bytes(leaf.kind, bytes)?)))
    }

    /// Whether a value can be read alone.
    pub(crate) fn is_direct(&self) -> bool {
        *self != Self::Decoded
    }

    /// How many rows the page has. 0 if none of its values can be read alone.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Plain { ends, .. } if ends.last().is_some_and(|end| *end > 0) => ends.len(),
            _ => 0,
        }
    }

    /// Whether an object has a value of the noted length at this row, or at the nearest row that is not null.
    pub(crate) fn is_of(&self, objects: &Objects, object: usize, leaf: &Leaf, row: usize) -> bool {
        let Some(place) = (row..self.rows()).chain((0..row).rev()).find_map(|row| self.place(leaf, row)) else {
            return true;
        };
        let length = (place.end - place.start).checked_sub(PREFIX).and_then(|length| u32::try_from(length).ok());
        let there = objects.read(object, place.start..place.start + PREFIX).ok();
        let there = there.and_then(|bytes| bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)));
        there == length
    }

    /// Adds the note to a saved index.
    pub(crate) fn save(&self, into: &mut Vec<u8>) {
        match self {
            Self::Decoded => into.push(0),
            Self::Nulls(def) => into.extend([3, *def]),
            Self::Plain { first, ends, defs } => {
                into.push(if defs.is_empty() { 1 } else { 2 });
                into.extend(first.to_le_bytes());
                into.extend((ends.len() as u32).to_le_bytes());
                ends.iter().for_each(|end| into.extend(end.to_le_bytes()));
                into.extend_from_slice(defs);
            }
        }
    }

    /// Reads a note from a saved index. `None` if the index is corrupt.
    pub(crate) fn load(from: &mut &[u8]) -> Option<Self> {
        let has_defs = match from.split_off(..1)? {
            [0] => return Some(Self::Decoded),
            [1] => false,
            [2] => true,
            [3] => return from.split_off_first().map(|def| Self::Nulls(*def)),
            _ => return None,
        };
        let (first, rows) = (from.try_get_u64_le().ok()?, from.try_get_u32_le().ok()? as usize);
        let ends =
            from.split_off(..rows.checked_mul(4)?)?.as_chunks().0.iter().map(|end| u32::from_le_bytes(*end)).collect();
        let defs = if has_defs { from.split_off(..rows)?.into() } else { Box::default() };
        Some(Self::Plain { first, ends, defs })
    }

    /// Whether the note can belong to this page.
    pub(crate) fn fits(&self, leaf: &Leaf, page: &PagePlace, rows: usize) -> bool {
        let (first, ends, defs) = match self {
            Self::Decoded => return true,
            Self::Nulls(def) => return *def < leaf.full,
            Self::Plain { first, ends, defs } => (first, ends, defs),
        };
        let bytes = page.range();
        let end = ends.last().map_or(Some(*first), |end| first.checked_add((*end).into()));
        let inside = *first >= bytes.start && end.is_some_and(|end| end <= bytes.end);
        let defs = match defs.is_empty() {
            true => Cow::Owned(vec![leaf.full; ends.len()]),
            false => Cow::Borrowed(&**defs),
        };
        let before = [0].iter().chain(ends.iter());
        let right = before.zip(ends.iter()).zip(defs.iter()).all(|((before, end), def)| match def.cmp(&leaf.full) {
            std::cmp::Ordering::Equal => end.checked_sub(*before).is_some_and(|bytes| u64::from(bytes) >= PREFIX),
            std::cmp::Ordering::Less => end == before,
            std::cmp::Ordering::Greater => false,
        });
        ends.len() == rows && defs.len() == rows && inside && right
    }
}

/// The bytes of a note of `rows` rows.
fn bytes(rows: usize, has_nulls: bool) -> u64 {
    rows as u64 * if has_nulls { 5 } else { 4 }
}

fn cut() -> PartError {
    PartError::damaged("a page ends too early")
}
