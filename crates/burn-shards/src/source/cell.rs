//! One value of a row, in the format's own type. The row type decides what it becomes.

mod array;
mod number;

pub use array::Array;
pub(crate) use array::number_count;
use bytes::Bytes;
pub(crate) use number::Type;
use std::sync::Arc;

/// The wanted columns of a row, with their names. A column that the row does not have is left out.
pub(crate) type Record = Vec<(Arc<str>, Cell)>;

/// Returns a duplicate name among those that are asked for. `None` asks for all.
pub(crate) fn twice<'a>(fields: &'a [(Arc<str>, Cell)], asked: Option<&[&str]>) -> Option<&'a str> {
    // Up to this number of names are compared in pairs, which needs no memory.
    const FEW_NAMES: usize = 16;
    let names = || fields.iter().map(|(name, _)| &**name).filter(|name| asked.is_none_or(|asked| asked.contains(name)));
    if fields.len() <= FEW_NAMES {
        return names()
            .enumerate()
            .find(|(at, name)| names().take(*at).any(|other| other == *name))
            .map(|(_, name)| name);
    }
    let mut names: Vec<&str> = names().collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    /// Only used by columns of unsigned values.
    Unsigned(u64),
    F32(f32),
    F64(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// The bytes of a file or of a text field. The row type decides whether they are read as a number, a text, bytes or JSON.
    Raw(Vec<u8>, Raw),
    List(Vec<Cell>),
    /// A list of numbers, little-endian.
    Numbers(Type, Bytes),
    /// Numbers with a shape, in C order and little-endian.
    Array(Vec<usize>, Type, Bytes),
    Struct(Vec<(Arc<str>, Cell)>),
    /// The pairs of a map, in their order. Keys may be of any type.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "the other formats have objects"))]
    Map(Vec<(Cell, Cell)>),
}

/// What the bytes of a [`Cell::Raw`] are, for row types that do not ask for a certain type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Raw {
    Bytes,
    Number,
    Text,
    Json,
}
