//! A data set of JSON lines.

use super::{
    lines::{self, Lines},
    parse::parse,
};
use crate::{
    data::{
        cell::{Cell, Record},
        error::DataError,
        index::{self, Kind},
        options::Options,
        source::{Source, Wanted},
        starts::Starts,
        store::Objects,
    },
    order::Blocks,
};
use bytes::Bytes;
#[cfg(feature = "remote")]
use std::ops::Range;

pub(super) const KIND: Kind = Kind(b"jsonl  1");
/// Bytes of a block.
const BLOCK: u64 = 4 << 20;
/// So many rows are tried, to see which columns there are.
const TRIED: usize = 8;

/// The rows of JSON lines.
#[derive(Debug)]
pub(crate) struct JsonlSource {
    objects: Objects,
    lines: Vec<Lines>,
    starts: Starts,
    wanted: Wanted,
    there_is: Vec<(String, String)>,
}

/// Opens files of JSON lines. What the index lacks is read first.
///
/// Blank lines are no rows. Lines may end with CRLF. A row with a key that is there twice is an error, if the key is wanted.
///
/// # Errors
/// If a file cannot be read or is compressed, or if none of its first rows is an object.
pub(crate) fn open(objects: Objects, wanted: &Wanted, options: &Options) -> Result<JsonlSource, DataError> {
    let is_of = |object, saved: &Bytes| lines::are_of(&objects, object, saved);
    let found =
        index::make(&objects, KIND, options, is_of, |object, progress| lines::find(&objects, object, progress))?;
    let (mut lines, mut starts) = (Vec::with_capacity(found.len()), Starts::new());
    for (object, found) in found.into_iter().enumerate() {
        let damaged = || DataError::damaged(objects.name(object), "its index makes no sense");
        let found = Lines::new(found).ok_or_else(damaged)?;
        starts.add(found.rows()).ok_or_else(damaged)?;
        lines.push(found);
    }
    let mut source = JsonlSource { objects, lines, starts, wanted: wanted.clone(), there_is: Vec::new() };
    source.there_is = source.columns()?;
    Ok(source)
}

impl JsonlSource {
    fn read_row(&self, row: usize, wanted: &Wanted) -> Result<Record, DataError> {
        let (object, row) = self.starts.find(row);
        let line = self.objects.samples(object, self.lines[object].row(row), 1)?;
        parse(line.trim_ascii_end(), wanted).map_err(|error| {
            let text = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            let problem = format!("{} at column {}", text.strip_suffix(&place).unwrap_or(&text), error.column());
            DataError::Row { object: self.objects.name(object).into(), row, key: None, column: None, problem }
        })
    }

    /// The keys of the first row. If that one is bad, one of the next rows tells.
    fn columns(&self) -> Result<Vec<(String, String)>, DataError> {
        let mut rows = (0..self.len().min(TRIED)).map(|row| self.read_row(row, &Wanted::All));
        let Some(first) = rows.next() else { return Ok(Vec::new()) };
        let row = first.or_else(|error| rows.find_map(Result::ok).ok_or(error))?;
        Ok(row.iter().map(|(name, cell)| ((**name).into(), kind(cell).into())).collect())
    }
}

fn kind(cell: &Cell) -> &'static str {
    match cell {
        Cell::Null => "null",
        Cell::Bool(_) => "boolean",
        Cell::Text(_) => "string",
        Cell::List(_) => "array",
        Cell::Struct(_) => "object",
        _ => "number",
    }
}

impl Source for JsonlSource {
    fn objects(&self) -> &Objects {
        &self.objects
    }

    fn starts(&self) -> &Starts {
        &self.starts
    }

    fn read(&self, row: usize) -> Result<Record, DataError> {
        self.read_row(row, &self.wanted)
    }

    #[cfg(feature = "remote")]
    fn parts(&self, row: usize, part: &mut dyn FnMut(usize, Range<u64>)) -> Result<(), DataError> {
        let (object, row) = self.starts.find(row);
        part(object, self.lines[object].row(row));
        Ok(())
    }

    fn there_is(&self) -> Vec<(String, String)> {
        self.there_is.clone()
    }

    /// Rows are read one by one, so a block takes no memory.
    fn blocks(&self) -> Blocks {
        Blocks::new(self.lines.iter().flat_map(|lines| lines.runs(BLOCK)).map(|rows| (rows, 0)))
    }
}
