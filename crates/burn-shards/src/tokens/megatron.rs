//! Megatron's index, read and written: which bytes of the file beside it are sequences, and which sequences are a document.
//!
//! Little-endian, without padding: `MMIDIDX\0\0`, version (u64, 1), type of the tokens (u8), number of sequences (u64), number of borders
//! (u64); then for each sequence its length in tokens (i32), for each its first byte (i64); then for each border of documents the number of
//! the sequence there (i64), from 0 to the number of sequences. A mode of each sequence (i8) may follow, for data of images and text; it is
//! not read.

use super::{TokenFileError, TokenType, content::Content};
use bytes::Buf;
use std::{
    io::{self, BufWriter, Write},
    ops::Range,
};

const MAGIC: &[u8; 9] = b"MMIDIDX\0\0";

/// The numbers of types of tokens. 6 and 7 are floats.
const TYPES: [(u8, TokenType); 6] = [
    (1, TokenType::U8),
    (2, TokenType::I8),
    (3, TokenType::I16),
    (4, TokenType::I32),
    (5, TokenType::I64),
    (8, TokenType::U16),
];

/// Whether Megatron has token files of this type.
pub(crate) fn has_type(kind: TokenType) -> bool {
    TYPES.iter().any(|(_, known)| *known == kind)
}

/// Writes the index of documents with these lengths in tokens, which lie one after the other. Each document is one sequence.
pub(crate) fn write(to: impl Write, kind: TokenType, lengths: &[i32]) -> io::Result<()> {
    let (mut to, count) = (BufWriter::new(to), lengths.len() as u64);
    to.write_all(MAGIC)?;
    to.write_all(&1u64.to_le_bytes())?;
    to.write_all(&[TYPES.iter().find(|(_, known)| *known == kind).map_or(0, |(number, _)| *number)])?;
    [count, count + 1].iter().try_for_each(|count| to.write_all(&count.to_le_bytes()))?;
    lengths.iter().try_for_each(|length| to.write_all(&length.to_le_bytes()))?;
    let mut pointer = 0i64;
    for length in lengths {
        to.write_all(&pointer.to_le_bytes())?;
        pointer += i64::from(*length) * kind.size() as i64;
    }
    (0..=count).try_for_each(|border| to.write_all(&border.to_le_bytes()))?;
    to.flush()
}

/// The numbers of the index, which all lie within its bytes.
struct MegatronIndex<'a> {
    kind: TokenType,
    lengths: &'a [[u8; 4]],
    pointers: &'a [[u8; 8]],
    borders: &'a [[u8; 8]],
}

/// Reads the index of a token file of `bytes` bytes.
pub(super) fn content(index: &[u8], bytes: usize) -> Result<Content, TokenFileError> {
    let index = MegatronIndex::read(index)?;
    let mut starts = index.documents()?.peekable();
    let (mut runs, mut documents, mut tokens) = (Vec::<Range<usize>>::new(), Vec::new(), 0usize);
    for sequence in 0..index.lengths.len() {
        let (run, length) = index.sequence(sequence, bytes)?;
        while starts.next_if(|start| *start == sequence).is_some() {
            documents.push(tokens);
        }
        tokens = tokens.checked_add(length).ok_or(TokenFileError::TooMany)?;
        match runs.last_mut() {
            Some(before) if before.end == run.start => before.end = run.end,
            _ => runs.push(run),
        }
    }
    Ok(Content { kind: index.kind, runs, documents: Some(documents) })
}

impl<'a> MegatronIndex<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, TokenFileError> {
        let mut rest = bytes.strip_prefix(MAGIC).ok_or(TokenFileError::NoIndex)?;
        let cut = |_| TokenFileError::IndexSize { sequences: 0, borders: 0, bytes: bytes.len() };
        let version = rest.try_get_u64_le().map_err(cut)?;
        if version != 1 {
            return Err(TokenFileError::IndexVersion(version));
        }
        let number = rest.try_get_u8().map_err(cut)?;
        let kind = match (TYPES.iter().find(|(known, _)| *known == number), number) {
            (Some((_, kind)), _) => *kind,
            (None, 6) => return Err(TokenFileError::Floats("f64")),
            (None, 7) => return Err(TokenFileError::Floats("f32")),
            (None, other) => return Err(TokenFileError::TypeNumber(other)),
        };
        let (sequences, borders) = (rest.try_get_u64_le().map_err(cut)?, rest.try_get_u64_le().map_err(cut)?);
        let parts = || {
            let count = usize::try_from(sequences).ok()?;
            let (lengths, rest) = rest.split_at_checked(count.checked_mul(4)?)?;
            let (pointers, rest) = rest.split_at_checked(count.checked_mul(8)?)?;
            let (borders, modes) = rest.split_at_checked(usize::try_from(borders).ok()?.checked_mul(8)?)?;
            let whole = modes.is_empty() || modes.len() == count;
            whole.then_some((lengths.as_chunks().0, pointers.as_chunks().0, borders.as_chunks().0))
        };
        let (lengths, pointers, borders) =
            parts().ok_or(TokenFileError::IndexSize { sequences, borders, bytes: bytes.len() })?;
        Ok(Self { kind, lengths, pointers, borders })
    }

    /// The bytes of a sequence and its length in tokens, if it lies in a token file of `bytes` bytes.
    fn sequence(&self, sequence: usize, bytes: usize) -> Result<(Range<usize>, usize), TokenFileError> {
        let length = i32::from_le_bytes(self.lengths[sequence]);
        let pointer = i64::from_le_bytes(self.pointers[sequence]);
        let place = || {
            let (at, tokens) = (usize::try_from(pointer).ok()?, usize::try_from(length).ok()?);
            let end = at.checked_add(tokens.checked_mul(self.kind.size())?)?;
            (end <= bytes && at.is_multiple_of(self.kind.size())).then_some((at..end, tokens))
        };
        place().ok_or(TokenFileError::Sequence { sequence, length, kind: self.kind, pointer, bytes })
    }

    /// The sequence at which each document starts, and the number of sequences as the end of the last document.
    fn documents(&self) -> Result<impl Iterator<Item = usize>, TokenFileError> {
        let sequences = self.lengths.len();
        let mut least = 0;
        for (border, number) in self.borders.iter().enumerate() {
            let sequence = i64::from_le_bytes(*number);
            let inside = usize::try_from(sequence).ok().filter(|at| (least..=sequences).contains(at));
            let first = border > 0 || sequence == 0;
            least = inside.filter(|_| first).ok_or(TokenFileError::Border { border, sequence, sequences })?;
        }
        // The counts fit in the index, as `read` has checked.
        Ok(self.borders.iter().map(|number| i64::from_le_bytes(*number) as usize))
    }
}

#[cfg(test)]
mod tests;
