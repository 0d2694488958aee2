//! What a row type asks for, and whether it takes rows of some types.

use super::{Fault, Row, RowError};
use crate::{
    source::{
        Wanted,
        cell::{Cell, Record},
    },
    system::caught::catch,
};
use serde::de::DeserializeOwned;
use std::{cell::OnceCell, sync::Arc};

/// The fields that a row type has asked of a value, if it takes the value as a struct or as a list of structs, and the fields of
/// the structs in it.
#[derive(Debug)]
pub(super) struct UsedFields {
    asked: OnceCell<&'static [&'static str]>,
    /// `None` if the value is no struct.
    inside: Option<Vec<(Arc<str>, UsedFields)>>,
}

impl UsedFields {
    fn new(cell: &Cell) -> Self {
        let inside = match cell {
            Cell::Struct(fields) => Some(all(fields)),
            Cell::List(cells) => return cells.first().map_or_else(Self::none, Self::new), // the sample of a list has one
            _ => None,
        };
        Self { asked: OnceCell::new(), inside }
    }

    fn none() -> Self {
        Self { asked: OnceCell::new(), inside: None }
    }

    /// Notes the fields. The first question counts.
    pub(super) fn ask(&self, fields: &'static [&'static str]) {
        let _ = self.asked.set(fields);
    }

    /// The notes of a field, by its place.
    pub(super) fn inside(&self, at: usize) -> Option<&Self> {
        self.inside.as_ref()?.get(at).map(|(_, seen)| seen)
    }

    fn of(&self, field: &str) -> Option<&Self> {
        self.inside.as_ref()?.iter().find(|(name, _)| **name == *field).map(|(_, seen)| seen)
    }

    /// The fields of the value that must be read.
    fn wanted(&self) -> Wanted {
        let Some(fields) = self.asked.get() else { return Wanted::All };
        let field = |name: &&'static str| (Arc::from(*name), self.of(name).map_or(Wanted::All, Self::wanted));
        Wanted::Some(fields.iter().map(field).collect())
    }
}

fn all(record: &Record) -> Vec<(Arc<str>, UsedFields)> {
    record.iter().map(|(name, cell)| (Arc::clone(name), UsedFields::new(cell))).collect()
}

/// What a row type makes of the columns of a schema.
#[derive(Debug)]
pub(crate) struct Learnt {
    /// The fields of each column that must be read. They are all fields of a column that could not be tried.
    #[cfg_attr(
        not(any(test, feature = "parquet")),
        expect(dead_code, reason = "the other formats read columns as a whole")
    )]
    pub(crate) wanted: Vec<(Arc<str>, Wanted)>,
    /// Why no row with these columns fits.
    pub(crate) wrong: Option<RowError>,
}

/// Tries a row type with a sample of each column. `columns` are the names of a tuple's values.
///
/// Each column of a struct is tried alone, so that a sample which is no good value hides no other column. The values of a
/// tuple are tried up to such a sample.
pub(crate) fn learn<T: DeserializeOwned>(samples: &Record, columns: Option<&[Arc<str>]>) -> Learnt {
    let seen = all(samples);
    // A sample is no real value: a type that panics at it may be right for all rows.
    let error = |record: Record, seen: &[(Arc<str>, UsedFields)]| {
        let made = catch(|| T::deserialize(Row { record, columns, seen: Some(seen) }).err());
        made.unwrap_or_else(|_| Some(RowError::new("a panic at a sample")))
    };
    let mut wrong = None;
    if columns.is_some() {
        wrong = error(samples.clone(), &seen).filter(|error| error.fault != Fault::Value);
    } else {
        let mut all_are_good = true;
        for (column, seen) in samples.iter().zip(seen.chunks(1)) {
            match error(vec![column.clone()], seen) {
                Some(error) if matches!(error.fault, Fault::Type(_)) => drop(wrong.get_or_insert(error)),
                Some(error) if error.fault == Fault::Value => all_are_good = false,
                _ => {}
            }
        }
        if wrong.is_none() && all_are_good {
            wrong = error(samples.clone(), &seen).filter(|error| error.fault == Fault::Missing);
        }
    }
    let wanted = seen.iter().map(|(name, seen)| (Arc::clone(name), seen.wanted())).collect();
    Learnt { wanted, wrong }
}
