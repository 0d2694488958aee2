//! What was written: the lines of `manifest.jsonl`. `make/exact.py` says how values are written there.

use crate::exact::Exact;
use serde::Deserialize;
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A data set, a picture or a sound.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) reader: String,
    pub(crate) paths: Vec<PathBuf>,
    /// How it was written, for people.
    pub(crate) how: String,
    #[serde(default)]
    pub(crate) columns: Vec<Column>,
    /// Columns whose type is not supported.
    #[serde(default)]
    pub(crate) refused: Vec<String>,
    /// The bytes of decoded pages in memory.
    pub(crate) memory: Option<u64>,
    /// Of a picture: its pixels, and how far off they may be. Of a sound: its samples, and how far off one may be.
    pub(crate) right: Option<PathBuf>,
    #[serde(default)]
    pub(crate) width: u32,
    #[serde(default)]
    pub(crate) height: u32,
    #[serde(default)]
    pub(crate) limit: (u8, f64),
    /// How it was resized to this size, if it was: `nearest`, `bilinear` or `bicubic`.
    pub(crate) resized: Option<String>,
    #[cfg(feature = "audio")]
    #[serde(default)]
    pub(crate) channels: u16,
    #[cfg(feature = "audio")]
    #[serde(default)]
    pub(crate) rate: u32,
}

/// A column of a data set.
#[derive(Debug, Deserialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    #[serde(rename = "as")]
    pub(crate) reads_as: As,
    values: Vec<Value>,
}

/// What a column is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum As {
    /// Whatever it is, and also the type that its values have.
    Any,
    /// Numbers with a shape.
    Array,
    Text,
    Bytes,
}

impl Column {
    pub(crate) fn values(&self) -> Vec<Exact> {
        self.values.iter().map(value).collect()
    }
}

/// Reads a manifest.
pub(crate) fn entries(folder: &Path) -> Vec<Entry> {
    let manifest = fs::read_to_string(folder.join("manifest.jsonl")).expect("a manifest");
    manifest.lines().map(|line| serde_json::from_str(line).expect("a line of the manifest")).collect()
}

fn value(told: &Value) -> Exact {
    match told {
        Value::Null => Exact::Null,
        Value::Bool(value) => Exact::Bool(*value),
        Value::Array(list) => Exact::List(list.iter().map(value).collect()),
        Value::Object(fields) => Exact::Struct(fields.iter().map(|(name, told)| (name.clone(), value(told))).collect()),
        Value::String(text) => tagged(text),
        Value::Number(number) => panic!("{number} has no tag"),
    }
}

fn tagged(text: &str) -> Exact {
    let (tag, rest) = text.split_at_checked(1).expect("a tag");
    match tag {
        "i" => Exact::Int(rest.parse().expect("an integer")),
        "f" => Exact::F32(f32::from_bits(u32::from_str_radix(rest, 16).expect("bits"))),
        "d" => Exact::F64(f64::from_bits(u64::from_str_radix(rest, 16).expect("bits"))),
        "t" => Exact::Text(rest.into()),
        "b" => {
            let byte = |at| u8::from_str_radix(&rest[at..at + 2], 16).expect("a byte");
            Exact::Bytes((0..rest.len()).step_by(2).map(byte).collect())
        }
        _ => panic!("the tag of {text} is not known"),
    }
}
