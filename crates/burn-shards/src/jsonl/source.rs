//! A data set of JSON lines.

use super::{
    lines::{self, Lines},
    parse::{parse, value},
};
use crate::{
    error::DataError,
    source::{
        Selection, Source,
        blocks::Blocks,
        cell::{Cell, Record},
        index::{self, Index, IndexPart},
        starts::Starts,
    },
    store::{Objects, options::Options},
};
use std::collections::HashSet;
#[cfg(feature = "remote")]
use std::ops::Range;
use std::sync::Arc;

pub(super) const KIND: &[u8; 8] = b"jsonl  1";
/// Bytes of a block.
const BLOCK: u64 = 4 << 20;
/// The number of rows that are tried to find the columns.
const ROWS_TRIED: usize = 1000;

/// The rows of JSON lines.
#[derive(Debug, Clone)]
pub(crate) struct JsonlSource {
    objects: Objects,
    index: Arc<Index>,
    starts: Starts,
    wanted: Selection,
    there_is: Vec<(String, String)>,
}

/// Opens files of JSON lines. Files that the index lacks are read first.
///
/// Blank lines are skipped. Lines may end with CRLF. A row with a duplicate key is an error, if the key is wanted.
///
/// # Errors
/// If a file cannot be read or is compressed. Bad rows are not errors here.
pub(crate) fn open(objects: Objects, wanted: &Selection, options: &Options) -> Result<JsonlSource, DataError> {
    let is_of = |object, saved: &IndexPart| lines::are_of(&objects, object, saved);
    let index =
        index::make(&objects, KIND, options, is_of, |object, progress| lines::find(&objects, object, progress))?;
    let mut starts = Starts::new();
    for object in 0..objects.len() {
        starts.add(index.rows(object), objects.name(object))?;
    }
    let (index, wanted) = (Arc::new(index), wanted.clone());
    let mut source = JsonlSource { objects, index, starts, wanted, there_is: Vec::new() };
    source.there_is = source.columns()?;
    Ok(source)
}

impl JsonlSource {
    fn lines(&self, object: usize) -> Result<Lines<'_>, DataError> {
        let is_of = |saved: &IndexPart| lines::are_of(&self.objects, object, saved);
        self.index.part(&self.objects, object, is_of).map(Lines)
    }

    fn parse(&self, (object, row): (usize, usize), line: &[u8]) -> Result<Record, DataError> {
        parse_row((self.objects.name(object), row), line, &self.wanted)
    }

    /// Reads lines of one object at once: at least one, at most `most`, and no more bytes than a block has.
    fn read_lines(&self, first: usize, most: usize) -> Result<Vec<Vec<u8>>, DataError> {
        let (object, row) = self.starts.find(first);
        let lines = self.lines(object)?;
        let places = lines.places(row..row.saturating_add(most.max(1)).min(lines.rows()))?;
        let (start, end) = (places[0], places[1]);
        let more = places[2..].iter().copied().take_while(|end| end.saturating_sub(start) <= BLOCK);
        let ends: Vec<u64> = [end].into_iter().chain(more).collect();
        let range = start..ends.last().copied().unwrap_or(start);
        let mut rest = self.objects.samples(object, range, ends.len() as u64)?;
        // Lines are split off from the end, so that each byte is moved once.
        let mut lines: Vec<Vec<u8>> = ends[..ends.len() - 1]
            .iter()
            .rev()
            .map(|end| rest.split_off((end.saturating_sub(start) as usize).min(rest.len())))
            .collect();
        lines.push(rest);
        lines.reverse();
        Ok(lines)
    }

    /// The keys of the first row that can be read: all its keys, or else the wanted ones.
    fn columns(&self) -> Result<Vec<(String, String)>, DataError> {
        let (mut row, mut most, mut some) = (0, 1, None);
        while row < self.len().min(ROWS_TRIED) {
            let lines = match self.read_lines(row, most) {
                Err(DataError::TooLarge { .. }) => vec![Vec::new()],
                lines => lines?,
            };
            for line in &lines {
                match value(line.trim_ascii_end()) {
                    Ok(Cell::Struct(record)) => return Ok(kinds(&record)),
                    _ => some = some.or_else(|| parse(line.trim_ascii_end(), &self.wanted).ok()),
                }
            }
            (row, most) = (row + lines.len(), (most * 8).min(ROWS_TRIED));
        }
        Ok(kinds(&some.unwrap_or_default()))
    }
}

/// Parses the line of a row.
pub(super) fn parse_row((object, row): (&str, usize), line: &[u8], wanted: &Selection) -> Result<Record, DataError> {
    parse(line.trim_ascii_end(), wanted).map_err(|error| {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let problem = format!("{} at column {}", text.strip_suffix(&place).unwrap_or(&text), error.column());
        DataError::Row { object: object.into(), row, key: None, column: None, problem }
    })
}

/// The name of each key and the type of its value. A duplicate key is listed once.
fn kinds(record: &Record) -> Vec<(String, String)> {
    let mut names = HashSet::with_capacity(record.len());
    let first = record.iter().filter(|(name, _)| names.insert(&**name));
    first.map(|(name, cell)| ((**name).into(), kind(cell).into())).collect()
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
        let (object, row) = self.starts.find(row);
        let line = self.objects.samples(object, self.lines(object)?.row(row)?, 1)?;
        self.parse((object, row), &line)
    }

    fn run(&self, first: usize, most: usize) -> Result<Vec<Result<Record, DataError>>, DataError> {
        let (object, row) = self.starts.find(first);
        let lines = match self.read_lines(first, most) {
            Err(error @ DataError::TooLarge { .. }) => return Ok(vec![Err(error)]), // an error of that row
            lines => lines?,
        };
        Ok(lines.iter().enumerate().map(|(at, line)| self.parse((object, row + at), line)).collect())
    }

    fn select(&self, wanted: &Selection, _: &Selection, _: &[&str]) -> Result<Arc<dyn Source>, DataError> {
        Ok(Arc::new(Self { objects: self.objects.without_ahead(), wanted: wanted.clone(), ..self.clone() }))
    }

    #[cfg(feature = "remote")]
    fn parts(&self, row: usize, part: &mut dyn FnMut(usize, Range<u64>)) -> Result<(), DataError> {
        let (object, row) = self.starts.find(row);
        part(object, self.lines(object)?.row(row)?);
        Ok(())
    }

    fn there_is(&self) -> Vec<(String, String)> {
        self.there_is.clone()
    }

    /// Reads the whole index, file by file. Rows are read one by one, so blocks take no memory.
    fn blocks(&self) -> Result<Blocks, DataError> {
        let runs = |object| self.lines(object)?.runs(BLOCK);
        let blocks = (0..self.objects.len()).map(runs).collect::<Result<Vec<_>, _>>()?;
        Ok(Blocks::of_rows(blocks.into_iter().flatten()))
    }
}
