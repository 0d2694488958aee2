//! Assembles a list of lists, a list of structs or a map of a row from the entries of all its leaves.

use crate::{
    parquet::{
        columns::{Column, Leaf, Levels, Shape},
        fault::PartError,
        pages::{DecodedPiece, list, value},
    },
    source::cell::Cell,
};
use std::{ops::Range, sync::Arc};

/// The entries of a leaf in one row. Those before `next` are used up.
pub(crate) struct Entries<'a> {
    leaf: &'a Leaf,
    piece: Arc<DecodedPiece>,
    next: usize,
    end: usize,
}

impl<'a> Entries<'a> {
    pub(crate) fn new(leaf: &'a Leaf, piece: Arc<DecodedPiece>, row: usize) -> Self {
        let Range { start, end } = piece.elements(row);
        Self { leaf, piece, next: start, end }
    }

    /// The definition level of the next entry.
    fn def(&self) -> Result<u8, PartError> {
        if self.next < self.end { Ok(self.piece.def(self.next, self.leaf.full)) } else { Err(differ()) }
    }

    /// Whether the next entry is one more element of the list with this repetition level.
    fn has_more(&self, rep: u8) -> bool {
        self.next < self.end && self.piece.reps.get(self.next) == Some(&rep)
    }
}

/// Makes the value of a row, and returns its definition level. `entries` has the entries of the shape's leaves, from leaf `first` on.
pub(crate) fn assemble(shape: &Shape, first: usize, entries: Vec<Entries<'_>>) -> Result<(u8, Cell), PartError> {
    let def = entries.first().ok_or_else(differ)?.def()?;
    let mut row = RowEntries { first, entries };
    let cell = row.value(shape)?;
    if row.entries.iter().any(|entries| entries.next < entries.end) {
        return Err(differ());
    }
    Ok((def, cell))
}

struct RowEntries<'a> {
    /// The number of the first leaf.
    first: usize,
    entries: Vec<Entries<'a>>,
}

impl<'a> RowEntries<'a> {
    fn leaf(&mut self, leaf: usize) -> &mut Entries<'a> {
        &mut self.entries[leaf - self.first]
    }

    fn leaves(&mut self, leaves: &Range<usize>) -> &mut [Entries<'a>] {
        &mut self.entries[leaves.start - self.first..leaves.end - self.first]
    }

    /// Whether a condition holds for the next entries. It must be the same for all leaves.
    fn agree(
        &mut self,
        leaves: &Range<usize>,
        is_so: impl Fn(&Entries<'a>) -> Result<bool, PartError>,
    ) -> Result<bool, PartError> {
        let mut entries = self.leaves(leaves).iter();
        let first = entries.next().map_or(Ok(false), &is_so)?;
        for other in entries {
            if is_so(other)? != first {
                return Err(differ());
            }
        }
        Ok(first)
    }

    /// Skips a null or an empty list: one entry of each leaf.
    fn skip(&mut self, leaves: &Range<usize>) {
        self.leaves(leaves).iter_mut().for_each(|entries| entries.next += 1);
    }

    fn value(&mut self, shape: &Shape) -> Result<Cell, PartError> {
        match shape {
            Shape::Value(leaf) | Shape::List(leaf) => {
                let entries = self.leaf(*leaf);
                let (def, at) = (entries.def()?, entries.next);
                entries.next += 1;
                let is_there = def == entries.leaf.full;
                if is_there { value(&entries.piece.values, entries.leaf.kind, at) } else { Ok(Cell::Null) }
            }
            Shape::Repeated { levels, rep, element, is_map, leaves } => {
                self.repeated(*levels, *rep, element, *is_map, leaves)
            }
            Shape::Struct { fields, there, level, leaves } => self.of_struct(fields, *there, level.as_deref(), leaves),
        }
    }

    fn of_struct(
        &mut self,
        fields: &[Column],
        there: u8,
        level: Option<&Shape>,
        leaves: &Range<usize>,
    ) -> Result<Cell, PartError> {
        if self.agree(leaves, |entries| Ok(entries.def()? < there))? {
            self.skip(leaves);
            return Ok(Cell::Null);
        }
        if let Some(level) = level {
            self.value(level)?;
        }
        let field = |field: &Column| Ok((Arc::clone(&field.name), self.value(&field.shape)?));
        fields.iter().map(field).collect::<Result<_, _>>().map(Cell::Struct)
    }

    fn repeated(
        &mut self,
        levels: Levels,
        rep: u8,
        element: &Column,
        is_map: bool,
        leaves: &Range<usize>,
    ) -> Result<Cell, PartError> {
        if self.agree(leaves, |entries| Ok(entries.def()? < levels.element))? {
            let is_null = self.agree(leaves, |entries| Ok(entries.def()? < levels.there))?;
            self.skip(leaves);
            return Ok(match (is_null, is_map) {
                (true, _) => Cell::Null,
                (false, true) => Cell::Map(Vec::new()),
                (false, false) => Cell::List(Vec::new()),
            });
        }
        if let Shape::Value(leaf) = element.shape {
            let entries = self.leaf(leaf);
            let start = entries.next;
            entries.next += 1;
            while entries.has_more(rep) {
                entries.next += 1;
            }
            let (piece, full) = (&entries.piece, entries.leaf.full);
            return list(piece, entries.leaf.kind, start..entries.next, |entry| piece.def(entry, full) < full);
        }
        let mut cells = vec![self.value(&element.shape)?];
        while self.agree(leaves, |entries| Ok(entries.has_more(rep)))? {
            cells.push(self.value(&element.shape)?);
        }
        if !is_map {
            return Ok(Cell::List(cells));
        }
        cells.into_iter().map(pair).collect::<Result<_, _>>().map(Cell::Map)
    }
}

/// The key and the value of a map's pair.
pub(crate) fn pair(cell: Cell) -> Result<(Cell, Cell), PartError> {
    let Cell::Struct(fields) = cell else { return Err(differ()) };
    let [(_, key), (_, value)] = <[_; 2]>::try_from(fields).map_err(|_| differ())?;
    Ok((key, value))
}

fn differ() -> PartError {
    PartError::damaged("the leaves of a list have not the same levels")
}
