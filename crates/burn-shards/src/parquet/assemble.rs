//! Makes a row of a list of lists, of a list of structs or of a map: from the entries that all its leaves have in the row.

use super::{
    cells::{list, value},
    piece::Piece,
    schema::{Leaf, Repeated, Shape, Struct},
    wrong::Wrong,
};
use crate::cell::Cell;
use std::{ops::Range, sync::Arc};

/// The entries of a leaf in one row. Those before `next` were used.
pub(super) struct Entries<'a> {
    leaf: &'a Leaf,
    piece: Arc<Piece>,
    next: usize,
    end: usize,
}

impl<'a> Entries<'a> {
    pub(super) fn new(leaf: &'a Leaf, piece: Arc<Piece>, row: usize) -> Self {
        let Range { start, end } = piece.elements(row);
        Self { leaf, piece, next: start, end }
    }

    /// The definition level of the next entry.
    fn def(&self) -> Result<u8, Wrong> {
        if self.next < self.end { Ok(self.piece.def(self.next, self.leaf.full)) } else { Err(differ()) }
    }

    /// Whether the next entry is one more element of the list with this repetition level.
    fn has_more(&self, rep: u8) -> bool {
        self.next < self.end && self.piece.reps.get(self.next) == Some(&rep)
    }
}

/// Makes the value of a row, and tells its definition level. `entries` are those of the leaves of `of`.
pub(super) fn assemble(of: &Repeated, entries: Vec<Entries<'_>>) -> Result<(u8, Cell), Wrong> {
    let mut row = RowEntries { first: of.leaves.start, entries };
    let def = row.def(&of.element.shape)?;
    let cell = row.repeated(of)?;
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
    fn leaf(&mut self, leaf: usize) -> Result<&mut Entries<'a>, Wrong> {
        leaf.checked_sub(self.first).and_then(|at| self.entries.get_mut(at)).ok_or_else(differ)
    }

    fn leaves(&mut self, leaves: &Range<usize>) -> Result<&mut [Entries<'a>], Wrong> {
        let range = leaves.start.saturating_sub(self.first)..leaves.end.saturating_sub(self.first);
        self.entries.get_mut(range).ok_or_else(differ)
    }

    /// The definition level of what comes next: that of its first leaf.
    fn def(&mut self, shape: &Shape) -> Result<u8, Wrong> {
        match shape {
            Shape::Value(leaf) | Shape::List(leaf) => self.leaf(*leaf)?.def(),
            Shape::Repeated(inner) => self.leaf(inner.leaves.start)?.def(),
            Shape::Struct(inner) => self.def(parts(inner).next().ok_or_else(differ)?),
        }
    }

    fn value(&mut self, shape: &Shape) -> Result<Cell, Wrong> {
        match shape {
            Shape::Value(leaf) | Shape::List(leaf) => {
                let entries = self.leaf(*leaf)?;
                let (def, at) = (entries.def()?, entries.next);
                entries.next += 1;
                let is_there = def == entries.leaf.full;
                if is_there { value(&entries.piece.values, entries.leaf.kind, at) } else { Ok(Cell::Null) }
            }
            Shape::Repeated(inner) => self.repeated(inner),
            Shape::Struct(inner) => self.fields(inner),
        }
    }

    /// Of a null struct, each leaf has one entry.
    fn fields(&mut self, of: &Struct) -> Result<Cell, Wrong> {
        let mut is_null = None;
        for part in parts(of) {
            let null = self.def(part)? < of.there;
            if *is_null.get_or_insert(null) != null {
                return Err(differ());
            }
        }
        if let Some(level) = &of.level {
            self.value(level)?;
        }
        let field = |field: &super::schema::Column| Ok((Arc::clone(&field.name), self.value(&field.shape)?));
        let cells = of.fields.iter().map(field).collect::<Result<_, Wrong>>()?;
        Ok(if is_null == Some(true) { Cell::Null } else { Cell::Struct(cells) })
    }

    fn repeated(&mut self, of: &Repeated) -> Result<Cell, Wrong> {
        let Repeated { levels, rep, element, leaves, is_map } = of;
        let def = self.def(&element.shape)?;
        if def < levels.element {
            for entries in self.leaves(leaves)? {
                if entries.def()? != def {
                    return Err(differ());
                }
                entries.next += 1;
            }
            return Ok(match (def < levels.there, is_map) {
                (true, _) => Cell::Null,
                (false, true) => Cell::Map(Vec::new()),
                (false, false) => Cell::List(Vec::new()),
            });
        }
        if let Shape::Value(leaf) = element.shape {
            let entries = self.leaf(leaf)?;
            let start = entries.next;
            entries.next += 1;
            while entries.has_more(*rep) {
                entries.next += 1;
            }
            let (piece, full) = (&entries.piece, entries.leaf.full);
            return list(piece, entries.leaf.kind, start..entries.next, |entry| piece.def(entry, full) < full);
        }
        let mut cells = Vec::new();
        loop {
            cells.push(self.value(&element.shape)?);
            let entries = self.leaves(leaves)?;
            let more = entries.iter().filter(|entries| entries.has_more(*rep)).count();
            match more {
                0 => break,
                all if all == entries.len() => {}
                _ => return Err(differ()),
            }
        }
        if !is_map {
            return Ok(Cell::List(cells));
        }
        cells.into_iter().map(pair).collect::<Result<_, _>>().map(Cell::Map)
    }
}

/// What a struct is read of: its fields, or a field that tells its level.
fn parts(of: &Struct) -> impl Iterator<Item = &Shape> {
    of.level.as_deref().into_iter().chain(of.fields.iter().map(|field| &field.shape))
}

/// The key and the value of a pair of a map.
pub(super) fn pair(cell: Cell) -> Result<(Cell, Cell), Wrong> {
    let Cell::Struct(fields) = cell else { return Err(differ()) };
    let [(_, key), (_, value)] = <[_; 2]>::try_from(fields).map_err(|_| differ())?;
    Ok((key, value))
}

fn differ() -> Wrong {
    Wrong::damaged("the leaves of a list have not the same levels")
}
