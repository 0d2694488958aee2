//! The trait that each format implements: how many rows there are, what they hold, and how one row is read.

pub(crate) mod blocks;
pub(crate) mod cell;
pub(crate) mod index;
pub(crate) mod location;
pub(crate) mod magic;
pub(crate) mod sample;
pub(crate) mod starts;

use super::{error::DataError, store::Objects};
use blocks::Blocks;
use cell::Record;
use starts::Starts;
#[cfg(feature = "remote")]
use std::ops::Range;
use std::{fmt, sync::Arc};

/// Rows of one format. All methods may be called on any thread.
pub(crate) trait Source: Send + Sync + fmt::Debug {
    /// The objects that the rows are in.
    fn objects(&self) -> &Objects;

    /// Which rows are in which object, or in which part of an object; see [`place`](Self::place).
    fn starts(&self) -> &Starts;

    /// The number of rows of all objects.
    fn len(&self) -> usize {
        self.starts().rows()
    }

    /// Reads the wanted columns of a row, on the calling thread. `row < len()`.
    fn read(&self, row: usize) -> Result<Record, DataError>;

    /// Tells the parts of objects that [`read`](Self::read) is going to ask for, for a row of a store behind a network.
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

    /// The same rows with other columns. `nested` are the columns with the fields that are wanted of structs, and `named` are
    /// those that are no files of a tar.
    fn select(&self, wanted: &Selection, nested: &Selection, named: &[&str]) -> Result<Arc<dyn Source>, DataError>;

    /// The bytes of a column in a row. `None` if the row lacks it, or if no index tells it.
    fn size(&self, _row: usize, _column: &str) -> Option<u64> {
        None
    }

    /// Compares the objects with what an index says of them.
    fn check(&self) -> Result<(), DataError> {
        Ok(())
    }

    /// The wanted columns that each object has, as its schema or index tells, each with a [sample](super::source::sample) of
    /// its type. Empty if only rows tell the columns.
    fn samples(&self) -> Vec<(usize, Record)> {
        Vec::new()
    }

    /// Whether an object that has a sample has rows too, as far as that is known.
    fn has_rows(&self, _object: usize) -> bool {
        true
    }

    /// Reads rows from `row` on: at least one, at most `_most`, all of one object. An error of the whole call is not
    /// that of a single row.
    fn run(&self, row: usize, _most: usize) -> Result<Vec<Result<Record, DataError>>, DataError> {
        Ok(vec![self.read(row)])
    }

    /// How many rows of the object that a row is in lack a column, and how many it has, if an index tells.
    fn lacking(&self, _row: usize, _column: &str) -> Option<(usize, usize)> {
        None
    }

    /// Names and types of all columns that the first object has.
    fn there_is(&self) -> Vec<(String, String)>;

    /// The runs of rows that are cheap to read together.
    fn blocks(&self) -> Blocks;

    /// Whether rows are decoded together, and are kept in memory for each other.
    fn decodes(&self) -> bool {
        false
    }

    /// The names of the classes of a column, if the files tell.
    fn classes(&self, _column: &str) -> Option<Vec<String>> {
        None
    }

    /// Reads once where the values of rows are, and saves it, so that single rows are cheap to read. Most formats know
    /// it when they are open.
    fn index(&self) -> Result<(), DataError> {
        Ok(())
    }
}

/// Which columns or extensions a row type wants, and which fields of those that are structs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selection {
    /// All columns that there are.
    All,
    /// The columns of these names, in this order. `Selection::All` inside stands for a value that is no struct, or for a
    /// struct with all its fields.
    Some(Vec<(Arc<str>, Selection)>),
}

impl Selection {
    /// All of each of these names.
    pub(crate) fn of_names(names: impl Iterator<Item = Arc<str>>) -> Self {
        Self::Some(names.map(|name| (name, Self::All)).collect())
    }

    /// What is wanted of a name. `None` if the name is not wanted.
    pub(crate) fn of(&self, name: &str) -> Option<&Self> {
        match self {
            Self::All => Some(&Self::All),
            Self::Some(fields) => fields.iter().find(|(field, _)| **field == *name).map(|(_, wanted)| wanted),
        }
    }
}
