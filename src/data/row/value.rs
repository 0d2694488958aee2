//! One value: from its cell to the type that the row has there.

use super::{error::RowError, unnamed::unnamed_structs};
use crate::data::cell::{Cell, Numbers, Raw};
use serde::{
    Deserializer,
    de::{
        DeserializeSeed, Error as _, IntoDeserializer, MapAccess, Unexpected, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::de::IoRead;
use std::{cell::OnceCell, str, sync::Arc};

/// The fields that a value was asked for, if it was asked as a struct.
pub(super) type Seen = OnceCell<&'static [&'static str]>;

/// One value on its way to its type.
pub(super) struct Value<'a> {
    pub(super) cell: Cell,
    pub(super) seen: Option<&'a Seen>,
}

impl From<Cell> for Value<'_> {
    fn from(cell: Cell) -> Self {
        Self { cell, seen: None }
    }
}

impl IntoDeserializer<'_, RowError> for Value<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Calls the visitor with a list of numbers.
fn numbers<'de, V: Visitor<'de>>(numbers: Numbers, visitor: V) -> Result<V::Value, RowError> {
    fn seq<'de, V: Visitor<'de>, N: IntoDeserializer<'de, RowError>>(
        list: Vec<N>,
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_seq(SeqDeserializer::new(list.into_iter()))
    }
    match numbers {
        Numbers::U8(list) => seq(list, visitor),
        Numbers::I8(list) => seq(list, visitor),
        Numbers::U16(list) => seq(list, visitor),
        Numbers::I16(list) => seq(list, visitor),
        Numbers::U32(list) => seq(list, visitor),
        Numbers::I32(list) => seq(list, visitor),
        Numbers::U64(list) => seq(list, visitor),
        Numbers::I64(list) => seq(list, visitor),
        Numbers::F32(list) => seq(list, visitor),
        Numbers::F64(list) => seq(list, visitor),
    }
}

fn text(bytes: Vec<u8>) -> Result<String, RowError> {
    String::from_utf8(bytes)
        .map_err(|error| RowError::invalid_value(Unexpected::Bytes(&error.into_bytes()[..]), &"text in UTF-8"))
}

/// Reads a number from a text.
fn number<'de, V: Visitor<'de>>(bytes: &[u8], visitor: V) -> Result<V::Value, RowError> {
    let text = str::from_utf8(bytes).unwrap_or_default().trim();
    if let Ok(number) = text.parse::<i64>() {
        visitor.visit_i64(number)
    } else if let Ok(number) = text.parse::<u64>() {
        visitor.visit_u64(number)
    } else if let Ok(number) = text.parse::<f64>() {
        visitor.visit_f64(number)
    } else {
        Err(RowError::new(format!("{:?} is no number", start(bytes))))
    }
}

/// As much of a file as an error shows.
fn start(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(40).collect()
}

/// Reads a whole JSON text. It is read as a stream, since what is made of it may not refer to it.
fn json<T>(
    bytes: &[u8],
    read: impl FnOnce(&mut serde_json::Deserializer<IoRead<&[u8]>>) -> Result<T, serde_json::Error>,
) -> Result<T, RowError> {
    let mut json = serde_json::Deserializer::from_reader(bytes);
    let value = read(&mut json).and_then(|value| json.end().map(|()| value));
    value.map_err(|error| RowError::new(format!("its JSON: {error}")))
}

/// The methods for one kind of number: a text is parsed, everything else is what it is.
macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
            match self.cell {
                Cell::Raw(bytes, _) => number(&bytes, visitor),
                _ => self.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.cell {
            Cell::Null => visitor.visit_unit(),
            Cell::Bool(value) => visitor.visit_bool(value),
            Cell::Int(value) => visitor.visit_i64(value),
            Cell::Unsigned(value) => visitor.visit_u64(value),
            Cell::F32(value) => visitor.visit_f32(value),
            Cell::F64(value) => visitor.visit_f64(value),
            Cell::Text(text) => visitor.visit_string(text),
            Cell::Bytes(bytes) | Cell::Raw(bytes, Raw::Bytes) => visitor.visit_byte_buf(bytes),
            Cell::Raw(bytes, Raw::Number) => number(&bytes, visitor),
            Cell::Raw(bytes, Raw::Text) => visitor.visit_string(text(bytes)?),
            Cell::Raw(bytes, Raw::Json) => json(&bytes, |json| json.deserialize_any(visitor)),
            Cell::List(cells) => visitor.visit_seq(SeqDeserializer::new(cells.into_iter().map(Value::from))),
            Cell::Numbers(list) | Cell::Array(_, list) => numbers(list, visitor),
            Cell::Struct(fields) => {
                let cells = fields.into_iter().map(|(name, cell)| (name, Value::from(cell)));
                visitor.visit_map(Fields { cells, next: None })
            }
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.cell {
            Cell::Raw(bytes, _) => match bytes.trim_ascii() {
                b"true" | b"1" => visitor.visit_bool(true),
                b"false" | b"0" => visitor.visit_bool(false),
                other => Err(RowError::new(format!("{:?} is not true, false, 1 or 0", start(other)))),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.cell {
            Cell::Null => visitor.visit_none(),
            Cell::Raw(ref json, Raw::Json) if json.trim_ascii() == b"null" => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.cell {
            Cell::Bytes(bytes) | Cell::Raw(bytes, Raw::Bytes | Raw::Text | Raw::Number) => {
                visitor.visit_string(text(bytes)?)
            }
            // A JSON text may be wanted as it stands.
            Cell::Raw(bytes, Raw::Json) if bytes.trim_ascii_start().first() != Some(&b'"') => {
                visitor.visit_string(text(bytes)?)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.cell {
            Cell::Raw(bytes, _) | Cell::Numbers(Numbers::U8(bytes)) | Cell::Array(_, Numbers::U8(bytes)) => {
                visitor.visit_byte_buf(bytes)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_byte_buf(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.cell {
            Cell::Bytes(bytes) | Cell::Raw(bytes, Raw::Bytes) => {
                visitor.visit_seq(SeqDeserializer::new(bytes.into_iter()))
            }
            Cell::Raw(bytes, _) => json(&bytes, |json| json.deserialize_seq(visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_seq(visitor)
    }

    unnamed_structs!();

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        if let Some(seen) = self.seen {
            let _ = seen.set(fields); // the first question counts
        }
        match self.cell {
            Cell::Raw(bytes, Raw::Json | Raw::Text) => {
                json(&bytes, |json| json.deserialize_struct(name, fields, visitor))
            }
            Cell::Array(shape, list) if fields.contains(&"shape") => {
                let shape = shape.into_iter().map(|side| Cell::Unsigned(side as u64)).collect();
                visitor.visit_map(MapDeserializer::new(
                    [("shape", Value::from(Cell::List(shape))), ("data", Cell::Numbers(list).into())].into_iter(),
                ))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        match self.cell {
            Cell::Text(text) => visitor.visit_enum(text.into_deserializer()),
            Cell::Int(number) => match u32::try_from(number) {
                Ok(number) => visitor.visit_enum(number.into_deserializer()),
                Err(_) => Err(RowError::invalid_value(Unexpected::Signed(number), &"the number of a variant")),
            },
            Cell::Unsigned(number) => match u32::try_from(number) {
                Ok(number) => visitor.visit_enum(number.into_deserializer()),
                Err(_) => Err(RowError::invalid_value(Unexpected::Unsigned(number), &"the number of a variant")),
            },
            Cell::Raw(bytes, Raw::Json) => json(&bytes, |json| json.deserialize_enum(name, variants, visitor)),
            Cell::Bytes(bytes) | Cell::Raw(bytes, _) => visitor.visit_enum(text(bytes)?.trim().into_deserializer()),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { unit unit_struct map identifier }
}

/// Named values, for structs and maps.
pub(super) struct Fields<'a, C: Iterator<Item = (Arc<str>, Value<'a>)>> {
    pub(super) cells: C,
    pub(super) next: Option<(Arc<str>, Value<'a>)>,
}

impl<'a, 'de, C: Iterator<Item = (Arc<str>, Value<'a>)>> MapAccess<'de> for Fields<'a, C> {
    type Error = RowError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, RowError> {
        self.next = self.cells.next();
        let Some((name, _)) = &self.next else { return Ok(None) };
        seed.deserialize((**name).into_deserializer()).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, RowError> {
        let (name, value) = self.next.take().ok_or_else(|| RowError::new("a value was asked for without its name"))?;
        seed.deserialize(value).map_err(|error| error.within(&name))
    }
}
