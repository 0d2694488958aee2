//! Values that are parsed from a text.

use super::{RowError, names};
use crate::{
    jsonl,
    source::{
        cell::Cell,
        magic::{no_text, pointer},
    },
};
use serde::de::{Error as _, Unexpected};
use std::str;

/// Reads a text. A Git LFS pointer is refused, because the text is in another file.
pub(super) fn text(bytes: Vec<u8>) -> Result<String, RowError> {
    if let Some(magic) = pointer(&bytes) {
        return Err(RowError::new(format!("its text is {}: {}", magic.is, magic.cure)));
    }
    String::from_utf8(bytes)
        .map_err(|error| RowError::invalid_value(Unexpected::Bytes(&error.into_bytes()[..]), &"text in UTF-8"))
}

/// Reads a number. Integers of more than 64 bits become floats.
pub(super) fn number(bytes: &[u8]) -> Result<Cell, RowError> {
    let text = str::from_utf8(bytes).unwrap_or_default().trim();
    if let Ok(number) = text.parse() {
        return Ok(Cell::Int(number));
    }
    if let Ok(number) = text.parse() {
        return Ok(Cell::Unsigned(number));
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_infinite() && text.contains(|char: char| char.is_ascii_digit()) => {
            Err(RowError::new(format!("{:?} does not fit an f64", start(bytes))))
        }
        Ok(number) => Ok(Cell::F64(number)),
        Err(_) => Err(no_other(bytes, "no number")),
    }
}

/// As [`number`], for a type of integers: a large integer does not become a float.
pub(super) fn integer(bytes: &[u8]) -> Result<Cell, RowError> {
    match number(bytes)? {
        Cell::F64(_) if is_whole(bytes.trim_ascii()) => {
            Err(RowError::new(format!("{:?} does not fit 64 bits", start(bytes))))
        }
        number => Ok(number),
    }
}

fn is_whole(text: &[u8]) -> bool {
    text.strip_prefix(b"-").unwrap_or(text).iter().all(u8::is_ascii_digit)
}

/// Reads `true`, `false`, `1` or `0`.
pub(super) fn flag(bytes: &[u8]) -> Result<bool, RowError> {
    match bytes.trim_ascii() {
        b"true" | b"1" => Ok(true),
        b"false" | b"0" => Ok(false),
        other => Err(no_other(other, "not true, false, 1 or 0")),
    }
}

/// Reads a whole JSON text.
pub(super) fn json(bytes: &[u8]) -> Result<Cell, RowError> {
    jsonl::value(unmarked(bytes)).map_err(|error| wrong_json(bytes, &error))
}

/// As [`json`], for a struct that asks for these names. The values of other keys are skipped.
pub(super) fn json_for(bytes: &[u8], names: &[&str]) -> Result<Cell, RowError> {
    jsonl::value_for(unmarked(bytes), names).map_err(|error| wrong_json(bytes, &error))
}

/// The names of all fields of a JSON text, including nested fields.
pub(super) fn keys(bytes: &[u8]) -> Vec<String> {
    match json(bytes) {
        Ok(Cell::Struct(fields)) => names(&fields),
        _ => Vec::new(),
    }
}

/// The text without the byte order mark that some editors put before it.
fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

fn wrong_json(bytes: &[u8], error: &serde_json::Error) -> RowError {
    RowError::new(match no_text(bytes) {
        Some(magic) => format!("its JSON is {}: {}", magic.is, magic.cure),
        None => format!("its JSON: {error}"),
    })
}

/// Says what a file is that has no value of the wanted kind.
fn no_other(bytes: &[u8], kind: &str) -> RowError {
    RowError::new(match no_text(bytes) {
        Some(magic) => format!("it is {kind}, but {}: {}", magic.is, magic.cure),
        None => format!("{:?} is {kind}", start(bytes)),
    })
}

/// The start of a file, as shown in errors.
fn start(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(40).collect()
}
