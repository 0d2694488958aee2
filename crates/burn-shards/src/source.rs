//! The trait that each format implements: how many rows there are, what they hold, and how one row is read.

pub(crate) mod blocks;
pub(crate) mod cell;
pub(crate) mod index;
pub(crate) mod location;
pub(crate) mod magic;
pub(crate) mod sample;
pub(crate) mod starts;
pub(crate) mod stream;

use super::{error::DataError, store::Objects};
use blocks::Blocks;
use cell::Record;
use starts::Starts;
#[cfg(feature = "remote")]
use std::ops::Range;
use std::{fmt, sync::Arc};

/// The rows of one format. All methods may be called on any thread.
pub(crate) trait Source: Send + Sync + fmt::Debug {
    /// The objects that the rows are in.
    fn objects(&self) -> &Objects;

    /// Which rows each object, or each part of an object, has; see [`place`](Self::place).
    fn starts(&self) -> &Starts;

    /// The number of rows of all objects.
    fn len(&self) -> usize {
        self.starts().rows()
    }

    /// Reads the wanted columns of a row, on the calling thread. `row < len()`.
    fn read(&self, row: usize) -> Result<Record, DataError>;

    /// Reports the parts of objects that [`read`](Self::read) will request for a row of a remote store.
    #[cfg(feature = "remote")]
    fn parts(&self, row: usize, part: &mut dyn FnMut(usize, Range<u64>)) -> Result<(), DataError>;

    /// The object that a row is in, and the row's number there.
    fn place(&self, row: usize) -> (&str, usize) {
        let (object, row) = self.starts().find(row);
        (self.objects().name(object), row)
    }

    /// The name of a row, if the format has names. This may read the name from the object.
    fn key(&self, _row: usize) -> Option<Box<str>> {
        None
    }

    /// The same rows with other columns. `nested` has the columns with the wanted fields of structs, and `named` those that are not files
    /// of a tar.
    fn select(&self, wanted: &Selection, nested: &Selection, named: &[&str]) -> Result<Arc<dyn Source>, DataError>;

    /// The bytes of a column in a row. `None` if the row lacks it, or if no index has it.
    fn size(&self, _row: usize, _column: &str) -> Result<Option<u64>, DataError> {
        Ok(None)
    }

    /// Compares the objects with their index.
    fn check(&self) -> Result<(), DataError> {
        Ok(())
    }

    /// The wanted columns of each object, from its schema or index, each with a [sample](super::source::sample) of its type. Empty if only
    /// the rows show the columns.
    fn samples(&self) -> Vec<(usize, Record)> {
        Vec::new()
    }

    /// Whether an object that has a sample has rows too, as far as that is known.
    fn has_rows(&self, _object: usize) -> bool {
        true
    }

    /// Reads rows from `row` on: at least one, at most `_most`, all of one object. An error of the whole call does not belong to a single
    /// row.
    fn run(&self, row: usize, _most: usize) -> Result<Vec<Result<Record, DataError>>, DataError> {
        Ok(vec![self.read(row)])
    }

    /// For the object of a row: how many of its rows lack a column, and how many rows it has, if an index has this.
    fn lacking(&self, _row: usize, _column: &str) -> Option<(usize, usize)> {
        None
    }

    /// Names and types of all columns that the first object has.
    fn there_is(&self) -> Vec<(String, String)>;

    /// The runs of rows that are cheap to read together.
    fn blocks(&self) -> Result<Blocks, DataError>;

    /// Whether rows are decoded together and kept in memory for their neighbours.
    fn decodes(&self) -> bool {
        false
    }

    /// The class names of a column, if the files have them.
    fn classes(&self, _column: &str) -> Option<Vec<String>> {
        None
    }

    /// Finds once where the values of rows are, and saves it, so that single rows are cheap to read. Most formats know this after `open`.
    fn index(&self) -> Result<(), DataError> {
        Ok(())
    }
}

/// Which columns or extensions a row type wants, and which fields of those that are structs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selection {
    /// All columns.
    All,
    /// The columns with these names, in this order. `Selection::All` inside means a value that is not a struct, or a struct with all its
    /// fields.
    Some(Vec<(Arc<str>, Selection)>),
}

impl Selection {
    /// Each of these names as a whole.
    pub(crate) fn of_names(names: impl Iterator<Item = Arc<str>>) -> Self {
        Self::Some(names.map(|name| (name, Self::All)).collect())
    }

    /// The selection inside a name. `None` if the name is not wanted.
    pub(crate) fn of(&self, name: &str) -> Option<&Self> {
        match self {
            Self::All => Some(&Self::All),
            Self::Some(fields) => fields.iter().find(|(field, _)| **field == *name).map(|(_, wanted)| wanted),
        }
    }
}
