//! The value of a column in a row: from a piece in memory, which is decoded if necessary, or read alone.

use super::ParquetSource;
use crate::{
    parquet::{
        columns::Shape,
        fault::PartError,
        footer::RowGroup,
        pages::{DecodedPiece, Note, PageQueue, cell, decode},
        rows::assemble::{Entries, assemble},
    },
    source::cell::Cell,
};
use bytes::Bytes;
use std::sync::Arc;

/// The bytes that a decoded piece may always take, even if the memory limit is lower.
const LEAST_ROOM: u64 = 64 << 20;
/// The decoded bytes that a piece may always take for each of its stored bytes.
const MOST_GROWTH: u64 = 1024;

impl ParquetSource {
    /// Reads a column and its definition level in this row.
    pub(super) fn column(&self, number: usize, row: usize, shape: &Shape) -> Result<(u8, Cell), PartError> {
        match shape {
            Shape::Value(leaf) | Shape::List(leaf) => self.value(number, *leaf, row),
            Shape::Repeated { leaves: range, .. } => {
                let leaves = self.leaves(self.groups[number].object);
                let entries = range.clone().map(|leaf| {
                    let (piece, row) = self.piece(number, leaf, row)?;
                    Ok(Entries::new(&leaves[leaf], piece, row))
                });
                assemble(shape, range.start, entries.collect::<Result<_, PartError>>()?)
            }
            Shape::Struct { fields, there, level, .. } => {
                if let Some(level) = level {
                    let (def, _) = self.column(number, row, level)?;
                    if def < *there {
                        return Ok((def, Cell::Null));
                    }
                }
                let mut cells = Vec::with_capacity(fields.len());
                for field in fields {
                    let (def, cell) = self.column(number, row, &field.shape)?;
                    if def < *there {
                        return Ok((def, Cell::Null));
                    }
                    cells.push((Arc::clone(&field.name), cell));
                }
                Ok((*there, Cell::Struct(cells)))
            }
        }
    }

    fn value(&self, number: usize, at: usize, row: usize) -> Result<(u8, Cell), PartError> {
        let group = &self.groups[number];
        let (leaf, chunk) = (&self.leaves(group.object)[at], &group.chunks[at]);
        if !chunk.notes.is_empty() {
            let (page, rows) = chunk.page(row, group.rows);
            let row = row - rows.start;
            if let Some(note) = chunk.notes.get(page).and_then(|note| note.get()).filter(|note| note.is_direct()) {
                if let Some(piece) = self.pieces.get((number, at, Some(page))) {
                    return cell(&piece, leaf, row);
                }
                if let Some(value) = note.read(&self.objects, group.object, leaf, row)? {
                    return Ok(value);
                }
            }
        }
        let (piece, row) = self.piece(number, at, row)?;
        cell(&piece, leaf, row)
    }

    /// The piece that has a row of a leaf, and the row's number in it.
    fn piece(&self, number: usize, at: usize, row: usize) -> Result<(Arc<DecodedPiece>, usize), PartError> {
        let group = &self.groups[number];
        let chunk = &group.chunks[at];
        let (page, first) = match chunk.pages.is_empty() {
            true => (None, 0),
            false => {
                let (page, rows) = chunk.page(row, group.rows);
                (Some(page), rows.start)
            }
        };
        let piece = self.pieces.get_or_make((number, at, page), || self.decode(group, at, page))?;
        if row - first >= piece.rows {
            return Err(PartError::damaged("a page has fewer rows than its file says"));
        }
        Ok((piece, row - first))
    }

    /// Reads and decodes a page, or the whole chunk of a leaf.
    fn decode(&self, group: &RowGroup, at: usize, page: Option<usize>) -> Result<DecodedPiece, PartError> {
        let (object, leaf, chunk) = (group.object, &self.leaves(group.object)[at], &group.chunks[at]);
        let (mut parts, mut rows, mut to_note) = (Vec::new(), group.rows, None);
        match page.and_then(|page| Some((page, chunk.pages.get(page)?))) {
            None => parts.push(Bytes::from(self.objects.samples(object, chunk.range.clone(), rows as u64)?)),
            Some((number, page)) => {
                rows = chunk.rows(number, rows).len();
                if let Some(dictionary) = chunk.dictionary() {
                    parts.push(self.objects.samples(object, dictionary, group.rows as u64)?.into());
                }
                let bytes = Bytes::from(self.objects.samples(object, page.range(), rows as u64)?);
                to_note = chunk.notes.get(number).map(|note| (note, page, bytes.clone()));
                parts.push(bytes);
            }
        }
        let stored = parts.iter().map(|part| part.len() as u64).sum::<u64>();
        let room = self.options.memory.max(LEAST_ROOM).max(stored.saturating_mul(MOST_GROWTH));
        let values = if leaf.reps > 0 { chunk.values } else { rows as u64 };
        let pages = PageQueue::new(leaf, chunk.codec, chunk.writer, parts, values, room);
        let piece = decode(leaf, pages, rows, room).map_err(|wrong| match (wrong, chunk.writer.old) {
            // The error counts only the pages so far. Later pages take memory too.
            (PartError::Large(least), _) if page.is_none() => PartError::Large(least.max(chunk.decoded(leaf, rows))),
            (PartError::Damaged(problem), Some(writer)) => PartError::Unsupported(format!(
                "a page that {writer} may have written wrong ({problem}; rewrite the file with a new pyarrow)"
            )),
            (other, _) => other,
        })?;
        // A page is noted only after it was decoded, so a refused page is refused again.
        if let Some((note, page, bytes)) = to_note {
            let found = Note::find(&self.objects, object, leaf, page, rows, Some(&bytes));
            _ = note.set(found.unwrap_or(Note::Decoded));
        }
        Ok(piece)
    }
}
