//! Where the lines of a file are.

use super::words::MendedText;
use crate::{
    error::DataError,
    source::{
        index::{IndexPart, MadePart, checked},
        magic::{other_format, other_text},
    },
    store::Objects,
    system::progress::Progress,
};
use bytes::Bytes;
use serde::de::IgnoredAny;
use std::{io::BufRead, ops::Range};

/// The bytes of a piece: files are read piece by piece.
const PIECE: u64 = 1 << 20;
/// The most bytes of a line. A file with a longer line is not treated as JSON lines.
const LONGEST_LINE: u64 = 1 << 30;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The number of rows whose places are read at once.
const RUN: usize = 4096;

/// Where the rows of a file are: a `u64` for the start of each, and one for the end of the last.
#[derive(Debug)]
pub(super) struct Lines<'a>(pub(super) IndexPart<'a>);

impl Lines<'_> {
    pub(super) fn rows(&self) -> usize {
        self.0.rows
    }

    /// The bytes of a row's line, including blank lines after it. `row < rows()`.
    pub(super) fn row(&self, row: usize) -> Result<Range<u64>, DataError> {
        let places = self.places(row..row + 1)?;
        if places[0] <= places[1] { Ok(places[0]..places[1]) } else { Err(self.0.wrong()) }
    }

    /// The start of each of these rows, and the end of the last.
    pub(super) fn places(&self, rows: Range<usize>) -> Result<Vec<u64>, DataError> {
        let at = |row: usize| (row as u64).saturating_mul(8);
        let saved = self.0.read(at(rows.start)..at(rows.end).saturating_add(8))?;
        Ok(saved.as_chunks().0.iter().map(|place| u64::from_le_bytes(*place)).collect())
    }

    /// The number of rows in each run of about `bytes` bytes.
    pub(super) fn runs(&self, bytes: u64) -> Result<Vec<usize>, DataError> {
        let (mut runs, mut first, mut start) = (Vec::new(), 0, self.places(0..0)?[0]);
        for from in (0..self.rows()).step_by(RUN) {
            let places = self.places(from..self.rows().min(from + RUN))?;
            for (end, place) in (from + 1..).zip(&places[1..]) {
                if end == self.rows() || *place >= start.saturating_add(bytes) {
                    runs.push(end - first);
                    (first, start) = (end, *place);
                }
            }
        }
        Ok(runs)
    }
}

/// Whether a saved index matches this file, judging by some of its rows.
pub(super) fn are_of(objects: &Objects, object: usize, saved: &IndexPart) -> Result<bool, DataError> {
    let (lines, rows, bytes) = (Lines(saved.clone()), saved.rows, objects.bytes(object));
    if saved.len() != (rows as u64).saturating_add(1).saturating_mul(8) || lines.places(rows..rows)?[0] != bytes {
        return Ok(false);
    }
    if rows == 0 {
        return Ok(bytes <= PIECE && is_blank(text(&objects.read(object, 0..bytes)?)));
    }
    for row in checked(&objects.list()[object], rows) {
        // The first row is checked with all bytes before it, and other rows with the end of the line before.
        let Range { start, end } = lines.row(row)?;
        let from = if row == 0 { 0 } else { start.saturating_sub(1) };
        if start >= end || end > bytes || start - from > PIECE {
            return Ok(false);
        }
        let part = objects.read(object, from..end.min(start.saturating_add(PIECE)))?;
        let (before, line) = part.split_at((start - from) as usize);
        let begins = match row {
            0 => matches!(text(before).last(), None | Some(b'\n')) && is_blank(text(before)),
            _ => before == b"\n",
        };
        let (line, behind) = line.split_at(line.iter().position(|byte| *byte == b'\n').map_or(line.len(), |at| at + 1));
        if !begins || is_blank(line) || !is_blank(behind) {
            return Ok(false);
        }
        let last = if end - start > PIECE { objects.read(object, end - 1..end)?.pop() } else { part.last().copied() };
        if end < bytes && last != Some(b'\n') {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The text after the byte order mark that some editors write.
pub(super) fn text(start: &[u8]) -> &[u8] {
    start.strip_prefix(BOM).unwrap_or(start)
}

pub(super) fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| b" \t\r\n".contains(byte))
}

/// Reads a file and finds its rows. A line of only white space is not a row.
pub(super) fn find(objects: &Objects, object: usize, progress: &Progress) -> Result<MadePart, DataError> {
    let (name, bytes, mut lines) = (objects.name(object), objects.bytes(object), Vec::new());
    let fits = |start: u64, end: u64| match end - start {
        0..=LONGEST_LINE => Ok(()),
        _ => {
            let problem =
                format!("the line at byte {start} has more than {LONGEST_LINE} bytes. Is it one object a line?");
            Err(DataError::damaged(name, problem))
        }
    };
    // Adds the place where a row begins, or the end of the file.
    let add = |lines: &mut Vec<u8>, place: u64| {
        fits(lines.last_chunk().map_or(place, |last| u64::from_le_bytes(*last)), place)?;
        lines.extend(place.to_le_bytes());
        Ok(())
    };
    // Where the current line begins, and whether it is known to be a row.
    let (mut at, mut line, mut is_row) = (0, 0, false);
    while at < bytes {
        let piece = objects.read(object, at..bytes.min(at.saturating_add(PIECE)))?;
        progress.add(piece.len() as u64);
        let mut rest = piece.as_slice();
        if at == 0 {
            rest = text(rest);
            check_start(name, rest, piece.len() as u64 == bytes)?;
            line = (piece.len() - rest.len()) as u64;
        }
        while !rest.is_empty() {
            let before = rest;
            let length = rest.skip_until(b'\n').unwrap_or(before.len()); // a read from memory cannot fail
            let part = before.get(..length).unwrap_or(before);
            is_row |= !is_blank(part);
            if part.ends_with(b"\n") {
                if is_row {
                    add(&mut lines, line)?;
                }
                line = at + (piece.len() - rest.len()) as u64;
                is_row = false;
            }
        }
        at += piece.len() as u64;
        // A hole in a sparse file is an endless line.
        fits(line, at)?;
    }
    if is_row {
        add(&mut lines, line)?;
    }
    // A single row may be an array of rows.
    if let [start] = lines.as_chunks().0 {
        let start = u64::from_le_bytes(*start);
        let line = objects.read(object, start..bytes.min(start.saturating_add(PIECE)))?;
        if line.trim_ascii_start().starts_with(b"[") {
            return Err(one_value(name, true));
        }
    }
    add(&mut lines, bytes)?;
    Ok(MadePart::new(lines.len() / 8 - 1, Bytes::new(), &lines))
}

/// Checks that a file is JSON lines, and that its first value is on one line. `is_all` says that `start` is the whole file.
pub(super) fn check_start(name: &str, start: &[u8], is_all: bool) -> Result<(), DataError> {
    // A bad line is an error of its row, but a text without any object has no rows.
    let is_object = |line: &[u8]| line.trim_ascii_start().starts_with(b"{");
    let has_rows = || start.split(|byte| *byte == b'\n').any(is_object);
    let other = other_format(name, start).or_else(|| other_text(name, start).filter(|_| !has_rows()));
    if let Some(error) = other {
        return Err(error);
    }
    let value = start.trim_ascii_start();
    if goes_on(value, is_all) { Err(one_value(name, value.starts_with(b"["))) } else { Ok(()) }
}

/// Whether the first value of a text continues after the first line. `is_all` is false if the text may be truncated; an unfinished line is
/// then inconclusive.
fn goes_on(start: &[u8], is_all: bool) -> bool {
    let first_line = start.iter().position(|byte| *byte == b'\n').unwrap_or(start.len());
    if !start.starts_with(b"[") && !start.starts_with(b"{") {
        return false;
    }
    let mended = MendedText::of(start);
    let text = mended.as_ref().map_or(start, |mended| &mended.text);
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => text[..values.byte_offset()].contains(&b'\n'),
        Some(Err(error)) => error.is_eof() && !is_all && first_line < start.len(),
        None => false,
    }
}

/// The error for a file that does not have one row per line.
fn one_value(name: &str, is_array: bool) -> DataError {
    let (is, filter) = match is_array {
        true => ("one JSON array", "'.[]'"),
        false => ("JSON whose objects take several lines each", "."),
    };
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let cure = format!("rows are lines, each with one object. `jq -c {filter} {file} > lines.jsonl` makes them");
    DataError::format(name, is, cure)
}
