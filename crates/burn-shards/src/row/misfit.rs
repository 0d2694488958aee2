//! Whether a row type accepts rows of some types.

use super::{Fault, RowDeserializer, RowError};
use crate::{
    source::cell::{Cell, Record},
    system::caught::catch,
};
use serde::de::DeserializeOwned;
use std::{slice, sync::Arc};

/// Tries a row type with a sample of each column, and returns why no row with these columns can fit. `columns` names the values of a tuple.
///
/// Each column of a struct is tried alone, so that a sample with a bad value does not hide errors of other columns. The values of a tuple
/// are tried up to such a sample.
pub(crate) fn misfit<T: DeserializeOwned>(samples: &Record, columns: Option<&[Arc<str>]>) -> Option<RowError> {
    // A sample is not a real value. A type that panics on it may still fit all rows.
    let error = |samples: &[(Arc<str>, Cell)]| {
        let made = catch(|| T::deserialize(RowDeserializer { record: samples.to_vec(), columns }).err());
        made.unwrap_or_else(|_| Some(RowError::new("a panic at a sample")))
    };
    if columns.is_some() {
        return error(samples).filter(|error| error.fault != Fault::Value);
    }
    let (mut wrong, mut all_are_good) = (None, true);
    for column in samples {
        match error(slice::from_ref(column)) {
            Some(error) if matches!(error.fault, Fault::Type(_)) => drop(wrong.get_or_insert(error)),
            Some(error) if error.fault == Fault::Value => all_are_good = false,
            _ => {}
        }
    }
    if wrong.is_none() && all_are_good {
        wrong = error(samples).filter(|error| error.fault == Fault::Missing);
    }
    wrong
}
