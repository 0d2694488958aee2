mod alike;
mod checked;
mod columns;
mod first_rows;
mod golden;
mod hostile;
mod limits;
mod made;
mod many;
mod memory;
mod nulls;
mod single;
mod writers;
mod written;

use super::rows::{ParquetSource, open_with};
use crate::{
    error::DataError,
    source::{Selection, Source, cell::Record},
    store::{Objects, options::Options},
};
use std::path::PathBuf;

/// Opens files. Pages of small columns are pieces too.
fn open(paths: &[PathBuf], wanted: &Selection, options: &Options) -> Result<ParquetSource, DataError> {
    open_with(Objects::local(paths.to_vec())?, wanted, options, 0)
}

fn rows(source: &ParquetSource) -> Result<Vec<Record>, DataError> {
    (0..source.len()).map(|row| source.read(row)).collect()
}

/// Wants these columns, with all their fields.
fn columns(names: &[&str]) -> Selection {
    Selection::Some(names.iter().map(|name| ((*name).into(), Selection::All)).collect())
}
