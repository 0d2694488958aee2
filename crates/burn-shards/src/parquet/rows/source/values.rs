//! The value of a column in a row: from a piece in memory, which is decoded if need be, or read alone.

use super::{Key, ParquetSource};
use crate::{
    parquet::{
        columns::{Shape, Struct},
        fault::Wrong,
        footer::Placed,
        pages::{Note, Pages, Piece, cell, decode},
        rows::assemble::{Entries, assemble},
    },
    source::cell::Cell,
};
use bytes::Bytes;
use std::sync::Arc;

/// The bytes that a decoded piece may always take, even if the limit of memory is less.
const LEAST_ROOM: u64 = 64 << 20;
/// The bytes that a decoded piece may always take for each byte that it is decoded from.
const MOST_GROWTH: u64 = 1024;
/// The number of the page in the key of a piece that is a whole chunk.
const WHOLE_CHUNK: u32 = u32::MAX;

impl ParquetSource {
    /// Reads a column, and the definition level that it has in this row.
    pub(super) fn column(&self, number: usize, row: usize, shape: &Shape) -> Result<(u8, Cell), Wrong> {
        match shape {
            Shape::Value(leaf) | Shape::List(leaf) => self.value(number, *leaf, row),
            Shape::Repeated(repeated) => {
                let leaves = self.leaves(self.groups[number].object);
                let entries = repeated.leaves.clone().map(|leaf| {
                    let (piece, row) = self.piece(number, leaf, row)?;
                    Ok(Entries::new(&leaves[leaf], piece, row))
                });
                assemble(repeated, entries.collect::<Result<_, Wrong>>()?)
            }
            Shape::Struct(Struct { fields, there, level, .. }) => {
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

    fn value(&self, number: usize, at: usize, row: usize) -> Result<(u8, Cell), Wrong> {
        let placed = &self.groups[number];
        let (leaf, chunk) = (&self.leaves(placed.object)[at], &placed.group.chunks[at]);
        if !chunk.notes.is_empty() {
            let (page, rows) = chunk.page(row, placed.group.rows);
            let key = Key { group: number as u32, leaf: at as u32, page: page as u32 };
            let row = row - rows.start;
            if let Some(note) = chunk.notes.get(page).and_then(|note| note.get()).filter(|note| note.is_direct()) {
                if let Some(piece) = self.pieces.get(key) {
                    return cell(&piece, leaf, row);
                }
                if let Some(value) = note.read(&self.objects, placed.object, leaf, row)? {
                    return Ok(value);
                }
            }
        }
        let (piece, row) = self.piece(number, at, row)?;
        cell(&piece, leaf, row)
    }

    /// The piece that has a row of a leaf, and the row's number in it.
    fn piece(&self, number: usize, at: usize, row: usize) -> Result<(Arc<Piece>, usize), Wrong> {
        let placed = &self.groups[number];
        let chunk = &placed.group.chunks[at];
        let (key, page, first) = match chunk.pages.is_empty() {
            true => (WHOLE_CHUNK, None, 0),
            false => {
                let (page, rows) = chunk.page(row, placed.group.rows);
                (page as u32, Some(page), rows.start)
            }
        };
        let key = Key { group: number as u32, leaf: at as u32, page: key };
        let piece = self.pieces.get_or_make(key, || self.decode(placed, at, page))?;
        if row - first >= piece.rows {
            return Err(Wrong::damaged("a page has fewer rows than its file says"));
        }
        Ok((piece, row - first))
    }

    /// Reads and decodes a page, or the whole chunk of a leaf.
    fn decode(&self, placed: &Placed, at: usize, page: Option<usize>) -> Result<Piece, Wrong> {
        let (object, leaf, chunk) = (placed.object, &self.leaves(placed.object)[at], &placed.group.chunks[at]);
        let (mut parts, mut rows, mut to_note) = (Vec::new(), placed.group.rows, None);
        match page.and_then(|page| Some((page, chunk.pages.get(page)?))) {
            None => parts.push(Bytes::from(self.objects.samples(object, chunk.range.clone(), rows as u64)?)),
            Some((number, page)) => {
                rows = chunk.rows(number, rows).len();
                if let Some(dictionary) = chunk.dictionary() {
                    parts.push(self.objects.samples(object, dictionary, placed.group.rows as u64)?.into());
                }
                let bytes = Bytes::from(self.objects.samples(object, page.range(), rows as u64)?);
                to_note = chunk.notes.get(number).map(|note| (note, page, bytes.clone()));
                parts.push(bytes);
            }
        }
        let stored = parts.iter().map(|part| part.len() as u64).sum::<u64>();
        let room = self.options.memory.max(LEAST_ROOM).max(stored.saturating_mul(MOST_GROWTH));
        let values = if leaf.reps > 0 { chunk.values } else { rows as u64 };
        let pages = Pages::new(leaf, chunk.codec, parts, values, room).by(chunk.writer);
        let piece = decode(leaf, pages, rows, room).map_err(|wrong| match (wrong, chunk.writer.old) {
            // The error counts the pages so far. Those behind them take memory too.
            (Wrong::Large(least), _) if page.is_none() => Wrong::Large(least.max(chunk.decoded(leaf, rows))),
            (Wrong::Damaged(problem), Some(writer)) => Wrong::Unsupported(format!(
                "a page that {writer} may have written wrong ({problem}; rewrite the file with a new pyarrow)"
            )),
            (other, _) => other,
        })?;
        // A page is noted only after it was decoded. So a page that was refused is refused again.
        if let Some((note, page, bytes)) = to_note {
            let found = Note::find(&self.objects, object, leaf, page, rows, Some(&bytes));
            _ = note.set(found.unwrap_or(Note::Decoded));
        }
        Ok(piece)
    }
}
