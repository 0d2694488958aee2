//! JSON lines from front to back, without an index.

use super::{
    lines::{check_start, is_blank, text},
    source::parse_row,
};
use crate::{
    error::DataError,
    source::{
        Selection,
        magic::START_BYTES,
        stream::{ByteStream, KeyedRecord, RecordReader},
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
pub(crate) fn stream(bytes: ByteStream, wanted: Selection) -> Result<JsonlStream, DataError> {
    check_start(&bytes.name, text(&bytes.start), (bytes.start.len() as u64) < START_BYTES)?;
    Ok(JsonlStream { bytes, wanted })
}

impl RecordReader for JsonlStream {
    fn next(&mut self, row: usize) -> Result<Option<KeyedRecord>, DataError> {
        loop {
            let is_first = self.bytes.at == 0;
            let line = self.bytes.line()?;
            if line.is_empty() {
                return Ok(None);
            }
            let line = if is_first { text(&line) } else { &line };
            if !is_blank(line) {
                return parse_row((&self.bytes.name, row), line, &self.wanted).map(|record| Some((record, None)));
            }
        }
    }
}
