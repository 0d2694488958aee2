//! NumPy's files of one array (`.npy`): a header, which is a dictionary in Python's words, and then the numbers.

mod header;
#[cfg(test)]
mod tests;

use super::{
    RowError,
    list::{list, plain},
    real::Real,
};
use crate::mds::Number;
use burn::tensor::f16;
use header::Header;
use serde::{
    Deserializer,
    de::{DeserializeSeed, IntoDeserializer, MapAccess, Visitor, value::SeqDeserializer},
    forward_to_deserialize_any,
};
use std::borrow::Cow;

const MAGIC: &[u8] = b"\x93NUMPY";
/// The most bytes of a header. NumPy itself reads 10,000.
const HEADER: usize = 1 << 16;

/// The array of a file.
#[derive(Debug)]
pub(super) struct Npy<'a> {
    shape: Vec<usize>,
    /// `None` for booleans.
    number: Option<Number>,
    /// In C order, the lowest byte of each number first.
    data: Cow<'a, [u8]>,
    /// The field that comes next.
    next: usize,
}

impl<'a> Npy<'a> {
    pub(super) fn read(file: &'a [u8]) -> Result<Self, RowError> {
        Self::parse(file).map_err(|problem| RowError::new(format!("its array (.npy): {problem}")))
    }

    fn parse(file: &'a [u8]) -> Result<Self, String> {
        let rest = file.strip_prefix(MAGIC).ok_or("it does not begin as one")?;
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
        let Header { descr, is_fortran, shape } = Header::parse(header).ok_or_else(|| unclear(header))?;
        let (size, is_big, number) = kind(&descr)?;
        let empty = shape.contains(&0).then_some(0);
        let bytes = empty.or_else(|| shape.iter().try_fold(size, |bytes, side| bytes.checked_mul(*side)));
        if bytes != Some(data.len()) {
            return Err(format!("the shape {shape:?} of `{descr}` is not that of its {} bytes", data.len()));
        }
        let mut data = Cow::Borrowed(data);
        if is_fortran && shape.len() > 1 && !data.is_empty() {
            data = in_c_order(&data, size, &shape).into();
        }
        if is_big && size > 1 {
            data.to_mut().chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        Ok(Self { shape, number, data, next: 0 })
    }
}

/// The two fields of `burn_shards::Array`.
impl<'de> MapAccess<'de> for Npy<'_> {
    type Error = RowError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, RowError> {
        self.next += 1;
        match self.next {
            1 => seed.deserialize("shape".into_deserializer()).map(Some),
            2 => seed.deserialize("data".into_deserializer()).map(Some),
            _ => Ok(None),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, RowError> {
        match self.next {
            1 => seed.deserialize(SeqDeserializer::new(self.shape.iter().copied())),
            _ => seed.deserialize(NpyData(self)),
        }
    }
}

/// The numbers of an array. They go to their type one by one, without a list in between.
struct NpyData<'a>(&'a Npy<'a>);

impl<'de> Deserializer<'de> for NpyData<'_> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        fn each<'de, V: Visitor<'de>, N: IntoDeserializer<'de, RowError>, const S: usize>(
            data: &[u8],
            number: fn([u8; S]) -> N,
            visitor: V,
        ) -> Result<V::Value, RowError> {
            plain(data.as_chunks::<S>().0.iter().map(|bytes| number(*bytes)), visitor)
        }
        let Npy { data, number, .. } = self.0;
        match number {
            None => plain(data.iter().map(|byte| *byte != 0), visitor),
            Some(Number::U8) => plain(data.iter().copied(), visitor),
            Some(Number::I8) => each(data, i8::from_le_bytes, visitor),
            Some(Number::U16) => each(data, u16::from_le_bytes, visitor),
            Some(Number::I16) => each(data, i16::from_le_bytes, visitor),
            Some(Number::F16) => each(data, |bytes| f16::from_le_bytes(bytes).to_f32(), visitor),
            Some(Number::U32) => each(data, u32::from_le_bytes, visitor),
            Some(Number::I32) => each(data, i32::from_le_bytes, visitor),
            Some(Number::F32) => each(data, f32::from_le_bytes, visitor),
            Some(Number::U64) => each(data, u64::from_le_bytes, visitor),
            Some(Number::I64) => each(data, i64::from_le_bytes, visitor),
            Some(Number::F64) => list(data.as_chunks().0.iter().map(|bytes| Real(f64::from_le_bytes(*bytes))), visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The bytes of a number, whether the highest comes first, and the type. `None` for booleans.
fn kind(descr: &str) -> Result<(usize, bool, Option<Number>), String> {
    let advice = match descr.trim_start_matches(['<', '>', '|', '=']).chars().next() {
        Some('O') => "Python objects are pickled, and a pickle can run any code: save numbers",
        Some('V') => "save each field of a structured array as an array of its own",
        Some('U' | 'S' | 'a') => "save texts as `.txt` or `.json`",
        Some('c') => "save `x.view(\"f4\")` or `x.view(\"f8\")`",
        Some('M' | 'm') => "save `x.astype(\"int64\")`",
        _ => "save `x.astype(\"f4\")` or another type of 1 to 8 bytes",
    };
    let number = match descr.get(1..).unwrap_or_default() {
        "b1" | "?" => return Ok((1, false, None)),
        "u1" => Number::U8,
        "i1" => Number::I8,
        "u2" => Number::U16,
        "i2" => Number::I16,
        "f2" => Number::F16,
        "u4" => Number::U32,
        "i4" => Number::I32,
        "f4" => Number::F32,
        "u8" => Number::U64,
        "i8" => Number::I64,
        "f8" => Number::F64,
        _ => return Err(format!("the type `{descr}` is not supported: {advice}")),
    };
    match descr.as_bytes()[0] {
        b'<' => Ok((number.size(), false, Some(number))),
        b'>' => Ok((number.size(), true, Some(number))),
        b'|' if number.size() == 1 => Ok((1, false, Some(number))),
        _ => Err(format!("the type `{descr}` does not tell the order of its bytes")),
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

/// Numbers of which the first dimension changes first, in C order: the last one does.
fn in_c_order(data: &[u8], size: usize, shape: &[usize]) -> Vec<u8> {
    let mut steps = Vec::with_capacity(shape.len());
    let mut step = size;
    for side in shape {
        steps.push(step);
        step *= side;
    }
    let (mut moved, mut place, mut at) = (Vec::with_capacity(data.len()), vec![0; shape.len()], 0);
    while moved.len() < data.len() {
        moved.extend_from_slice(&data[at..at + size]);
        for dimension in (0..shape.len()).rev() {
            place[dimension] += 1;
            at += steps[dimension];
            if place[dimension] < shape[dimension] {
                break;
            }
            at -= steps[dimension] * shape[dimension];
            place[dimension] = 0;
        }
    }
    moved
}
