//! The encodings of columns.

use super::ndarray::{ArrayType, take};
use crate::source::{
    Selection,
    cell::{Cell, Raw, Type},
    sample,
};
use std::sync::Arc;

/// The encoding of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Encoding {
    Number(Type),
    Text,
    /// Bytes, and files such as JPEGs.
    Bytes,
    /// Text with a number, or JSON.
    Raw(Raw),
    /// The pixels of an image.
    Pixels,
    /// Several files or images. Some encodings begin with four meaningless bytes.
    List {
        head: usize,
        item: Box<Encoding>,
    },
    Array(ArrayType),
}

impl Encoding {
    /// Returns the encoding with a name, or an error that says what is not supported.
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        let (base, kind) = name.split_once(':').map_or((name, None), |(base, kind)| (base, Some(kind)));
        Ok(match (base, kind) {
            ("ndarray", None) => Self::Array(ArrayType::default()),
            ("ndarray", Some(kind)) => {
                Self::Array(ArrayType::parse(kind).ok_or_else(|| format!("arrays of the kind `{kind}`"))?)
            }
            ("int", None) => Self::Number(Type::I64),
            ("str", None) => Self::Text,
            ("str_int" | "str_float", None) => Self::Raw(Raw::Number),
            ("str_decimal", None) => Self::Raw(Raw::Text), // as a number it could lose digits
            ("json", None) => Self::Raw(Raw::Json),
            ("bytes" | "jpeg" | "png", None) => Self::Bytes,
            // The number is the quality of the compression, which readers do not need.
            ("jpeg", Some(quality)) if quality.parse().is_ok_and(|quality: u8| quality <= 100) => Self::Bytes,
            ("pil", None) => Self::Pixels,
            ("jpeg_array" | "jpegarray", None) => Self::List { head: 0, item: Self::Bytes.into() },
            ("list[jpeg]" | "list[png]", None) => Self::List { head: 4, item: Self::Bytes.into() },
            ("list[pil]", None) => Self::List { head: 4, item: Self::Pixels.into() },
            ("pkl", _) => return Err("pickled Python objects (`pkl`)".into()),
            _ => return Type::named(name).map(Self::Number).ok_or_else(|| format!("the encoding `{name}`")),
        })
    }

    /// A value of this encoding.
    pub(super) fn sample(&self) -> Cell {
        match self {
            Self::Number(kind) => kind.one(&[0; 8][..kind.size()]).unwrap_or(Cell::Null),
            Self::Text => Cell::Text(String::new()),
            Self::Bytes => Cell::Bytes(sample::bytes()),
            Self::Raw(Raw::Json) => sample::unknown(),
            Self::Raw(raw) => Cell::Raw(b"0".into(), *raw),
            Self::Pixels => pixels(&[0; 12], &Selection::All).unwrap_or_else(|_| sample::unknown()),
            Self::List { item, .. } => Cell::List(vec![item.sample()]),
            Self::Array(kind) => kind.sample(),
        }
    }

    /// Reads a value. The error is the problem with it.
    pub(super) fn read(&self, bytes: &[u8], wanted: &Selection) -> Result<Cell, String> {
        match self {
            Self::Number(kind) => {
                kind.one(bytes).ok_or_else(|| format!("a number of {} bytes cannot have {}", kind.size(), bytes.len()))
            }
            Self::Text => String::from_utf8(bytes.to_vec()).map(Cell::Text).map_err(|error| error.to_string()),
            Self::Bytes => Ok(Cell::Bytes(bytes.to_vec())),
            Self::Raw(raw) => Ok(Cell::Raw(bytes.to_vec(), *raw)),
            Self::Pixels => pixels(bytes, wanted),
            Self::List { head, item } => list(bytes, *head, item, wanted),
            Self::Array(kind) => kind.read(bytes),
        }
    }
}

/// An image: its width, its height, its mode (a word such as `RGB`), and then its pixels.
fn pixels(bytes: &[u8], wanted: &Selection) -> Result<Cell, String> {
    let mut rest = bytes;
    let (width, height) = (number(&mut rest)?, number(&mut rest)?);
    let mode = number(&mut rest)?;
    let mode = take(&mut rest, mode as usize)?;
    let mode = std::str::from_utf8(mode).map_err(|error| error.to_string())?;
    let mut fields = Vec::new();
    for name in ["width", "height", "mode", "data"] {
        if wanted.of(name).is_some() {
            let value = match name {
                "width" => Cell::Unsigned(width.into()),
                "height" => Cell::Unsigned(height.into()),
                "mode" => Cell::Text(mode.into()),
                _ => Cell::Bytes(rest.to_vec()),
            };
            fields.push((Arc::from(name), value));
        }
    }
    Ok(Cell::Struct(fields))
}

/// A number of items, the size of each, and then the items.
fn list(bytes: &[u8], head: usize, item: &Encoding, wanted: &Selection) -> Result<Cell, String> {
    let mut rest = bytes;
    take(&mut rest, head)?;
    let items = number(&mut rest)?;
    let bytes = usize::try_from(u64::from(items) * 4).map_err(|error| error.to_string())?;
    let sizes = take(&mut rest, bytes)?;
    let mut list = Vec::with_capacity(sizes.len() / 4);
    for size in sizes.as_chunks().0 {
        let bytes = take(&mut rest, u32::from_le_bytes(*size) as usize)?;
        list.push(item.read(bytes, wanted)?);
    }
    if rest.is_empty() { Ok(Cell::List(list)) } else { Err(format!("{} bytes follow the list", rest.len())) }
}

/// Reads a `u32` from the front.
pub(super) fn number(rest: &mut &[u8]) -> Result<u32, String> {
    let bytes = take(rest, 4)?;
    Ok(bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
}
