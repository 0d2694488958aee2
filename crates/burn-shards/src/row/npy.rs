//! NumPy's files of one array (`.npy`): a header, which is a Python dictionary, and then the numbers.

mod header;
mod open;
#[cfg(test)]
mod tests;

use super::RowError;
use crate::source::{
    cell::{Cell, Type, number_count},
    magic::known,
};
use bytes::Bytes;
use header::NpyHeader;
use std::ops::Range;

const MAGIC: &[u8] = b"\x93NUMPY";
/// The most bytes of a header. NumPy itself reads 10,000.
const HEADER: usize = 1 << 16;

/// Reads the array of a file.
pub(super) fn read(file: Vec<u8>) -> Result<Cell, RowError> {
    parse(file.into()).map_err(|problem| RowError::new(format!("its array (.npy): {problem}")))
}

fn parse(file: Bytes) -> Result<Cell, String> {
    let NpyLayout { shape, kind, is_big, is_fortran, data, .. } = layout(&file)?;
    let (size, mut numbers) = (kind.size(), file.slice(data));
    if is_fortran {
        let mut moved = Vec::with_capacity(numbers.len());
        add_in_c_order(&mut moved, &numbers, size, size, &shape);
        numbers = moved.into();
    }
    if is_big {
        let mut swapped = Vec::from(numbers);
        swapped.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        numbers = swapped.into();
    }
    Ok(Cell::Array(shape, kind, numbers))
}

/// How the numbers of a file lie there.
struct NpyLayout {
    shape: Vec<usize>,
    kind: Type,
    /// The type of the numbers in NumPy's words.
    descr: String,
    is_big: bool,
    /// Whether its numbers do not lie in C order.
    is_fortran: bool,
    /// The place of its numbers in the file, as many as the shape says.
    data: Range<usize>,
}

/// Reads the header, and checks that its shape is that of the bytes behind it.
fn layout(file: &[u8]) -> Result<NpyLayout, String> {
    let rest = file.strip_prefix(MAGIC).ok_or_else(|| other(file))?;
    let cut = || "it is cut off".to_string();
    let (length, rest) = match rest {
        [1, _, a, b, rest @ ..] => (u16::from_le_bytes([*a, *b]).into(), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        [version, ..] if !(1..=3).contains(version) => return Err(format!("version {version} is not known")),
        _ => return Err(cut()),
    };
    if length > HEADER {
        return Err(format!("a header of {length} bytes"));
    }
    let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
    let header = str::from_utf8(header).map_err(|_| "its header is not in UTF-8")?;
    let NpyHeader { descr, fortran_order, shape } = NpyHeader::parse(header).ok_or_else(|| unclear(header))?;
    let (kind, is_big) = kind(&descr)?;
    let bytes = number_count(&shape).and_then(|count| count.checked_mul(kind.size()));
    if bytes != Some(data.len()) {
        let cure = match bytes {
            Some(bytes) if bytes < data.len() => "save one array in a file, and nothing behind it",
            _ => "the file is cut off or damaged: save it again",
        };
        return Err(format!("the shape {shape:?} of `{descr}` is not that of its {} bytes: {cure}", data.len()));
    }
    let is_fortran = fortran_order && shape.len() > 1 && !data.is_empty();
    Ok(NpyLayout { data: file.len() - data.len()..file.len(), shape, kind, descr, is_big, is_fortran })
}

/// Says what a file is that is not an array.
fn other(file: &[u8]) -> String {
    match known(file) {
        Some(magic) => format!("the file is {}: {}", magic.is, magic.cure),
        None => "it does not begin as one: save it with `numpy.save`".into(),
    }
}

/// The type of the numbers, and whether they are big-endian.
fn kind(descr: &str) -> Result<(Type, bool), String> {
    let (order, code) = descr.split_at_checked(1).unwrap_or_default();
    if code == "b1" || code == "?" {
        return Ok((Type::Bool, false));
    }
    let known = code.split_at_checked(1).and_then(|(letter, bytes)| Type::of_numpy(letter, bytes.parse().ok()?));
    let kind = known.ok_or_else(|| format!("the type `{descr}` is not supported: {}", advice(descr)))?;
    match (order, kind.size()) {
        ("<", _) | ("|", 1) => Ok((kind, false)),
        (">", _) => Ok((kind, true)),
        _ => Err(format!("the type `{descr}` does not tell the order of its bytes: save `x.astype(\"<{code}\")`")),
    }
}

fn advice(descr: &str) -> &'static str {
    match descr.trim_start_matches(['<', '>', '|', '=']).chars().next() {
        Some('O') => "Python objects are pickled, and a pickle can run any code: save numbers",
        Some('V') => "save `x.astype(\"f4\")`; NumPy has no name for bfloat16 and float8",
        Some('U' | 'S' | 'a') => "save texts as `.txt` or `.json`",
        Some('c') if descr.ends_with("c8") => "save `x.view(\"f4\")`",
        Some('c') => "save `x.view(\"f8\")`",
        Some('M' | 'm') => "save `x.astype(\"int64\")`",
        _ => "save `x.astype(\"f4\")` or another type of 1 to 8 bytes",
    }
}

fn unclear(header: &str) -> String {
    let start: String = header.chars().take(100).collect();
    if header.contains('[') {
        return format!(
            "the type of a structured array is not supported: save each field as an array of its own ({start})"
        );
    }
    format!("its header is not clear: {start}")
}

/// Adds numbers in C order, in which the last dimension changes fastest. In `data` the first one does, after each `step` bytes.
fn add_in_c_order(moved: &mut Vec<u8>, data: &[u8], size: usize, step: usize, shape: &[usize]) {
    let [side, inner @ ..] = shape else { return moved.extend_from_slice(&data[..size]) };
    for place in 0..*side {
        add_in_c_order(moved, &data[place * step..], size, step * side, inner);
    }
}
