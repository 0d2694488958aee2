//! Decoded values of some rows of a leaf.

use std::{mem::size_of, ops::Range};

/// The values of neighbouring rows, including nulls.
#[derive(Debug)]
pub(crate) struct DecodedPiece {
    pub(crate) rows: usize,
    /// The definition level of each row, or of the first element of its list. Empty if no value is null.
    ///
    /// For a nested leaf, the level of each entry. Each element of the innermost lists is an entry, and so is each empty or null list. Each
    /// entry has a place in `values` too.
    pub(crate) defs: Vec<u8>,
    /// The repetition level of each entry. Empty if the leaf is not nested.
    pub(crate) reps: Vec<u8>,
    /// Where the elements (for a nested leaf, the entries) of each row's list begin, and where the last ones end. Empty if the column is
    /// not a list.
    pub(crate) starts: Vec<u32>,
    /// Whether each element of the lists is null. Empty if no element is.
    pub(crate) holes: Vec<bool>,
    pub(crate) values: Values,
}

#[derive(Debug)]
pub(crate) enum Values {
    Bool(Vec<bool>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bytes(Blob),
}

/// Byte strings one after another. Several rows may share a string.
#[derive(Debug, Default)]
pub(crate) struct Blob {
    pub(crate) bytes: Vec<u8>,
    /// The start and the length of each string.
    pub(crate) places: Vec<(u32, u32)>,
}

impl DecodedPiece {
    /// The definition level of a row, or of an entry.
    pub(crate) fn def(&self, row: usize, full: u8) -> u8 {
        self.defs.get(row).copied().unwrap_or(full)
    }

    /// The elements of a row of a list.
    pub(crate) fn elements(&self, row: usize) -> Range<usize> {
        let at = |row: usize| self.starts.get(row).map_or(0, |start| *start as usize);
        at(row)..at(row + 1)
    }

    pub(crate) fn is_hole(&self, element: usize) -> bool {
        self.holes.get(element).copied().unwrap_or(false)
    }

    /// The bytes of memory that the piece takes.
    pub(crate) fn bytes(&self) -> u64 {
        let values = match &self.values {
            Values::Bool(values) => values.capacity(),
            Values::I32(values) => values.capacity() * 4,
            Values::I64(values) => values.capacity() * 8,
            Values::F32(values) => values.capacity() * 4,
            Values::F64(values) => values.capacity() * 8,
            Values::Bytes(blob) => blob.bytes.capacity() + blob.places.capacity() * 8,
        };
        let levels = self.defs.capacity() + self.reps.capacity() + self.starts.capacity() * 4 + self.holes.capacity();
        (size_of::<Self>() + values + levels) as u64
    }
}

impl Blob {
    pub(crate) fn get(&self, at: usize) -> Option<&[u8]> {
        let (start, length) = *self.places.get(at)?;
        self.bytes.get(start as usize..)?.get(..length as usize)
    }
}
