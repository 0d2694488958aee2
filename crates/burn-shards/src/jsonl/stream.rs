//! JSON lines from front to back, without an index.

use super::{
    lines::{check_start, is_blank, text},
    source::parse_row,
};
use crate::{
    error::DataError,
    source::{
        Selection,
        cell::Record,
        magic::START_BYTES,
        stream::{ByteStream, RecordReader},
    },
};

/// Lines that are read once.
#[derive(Debug)]
pub(crate) struct JsonlStream {
    bytes: ByteStream,
    wanted: Selection,
}

/// Begins to read lines.
///
/// # Errors
/// If they do not begin as JSON lines do.
pub(crate) fn stream(mut bytes: ByteStream, wanted: Selection) -> Result<JsonlStream, DataError> {
    let first = text(&bytes.start);
    let mark = bytes.start.len() - first.len();
    check_start(&bytes.name, first, (bytes.start.len() as u64) < START_BYTES)?;
    bytes.skip(mark as u64)?;
    Ok(JsonlStream { bytes, wanted })
}

impl RecordReader for JsonlStream {
    fn next(&mut self, row: usize) -> Result<Option<(Record, Option<Box<str>>)>, DataError> {
        loop {
            let line = self.bytes.line()?;
            if line.is_empty() {
                return Ok(None);
            }
            if !is_blank(&line) {
                return parse_row((&self.bytes.name, row), &line, &self.wanted).map(|record| Some((record, None)));
            }
        }
    }
}
