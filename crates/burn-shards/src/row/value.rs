//! One value: from its cell to the type of its field.

use super::{
    RowError, byte,
    fields::{Fields, once},
    list::{list, numbers},
    npy,
    plain::Plain,
    text::{flag, integer, json, json_for, keys, number, text},
    unnamed::unnamed_structs,
};
use crate::source::cell::{Cell, Raw, Type};
use serde::{
    Deserialize, Deserializer,
    de::{
        Error as _, IntoDeserializer, MapAccess, Unexpected, Visitor,
        value::{MapAccessDeserializer, MapDeserializer},
    },
    forward_to_deserialize_any,
};
use std::sync::Arc;

/// One value on its way to its type.
pub(super) struct Value(pub(super) Cell);

impl IntoDeserializer<'_, RowError> for Value {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The fields of a struct. The type asks for some of them, or for all.
fn named<'de>(
    fields: Vec<(Arc<str>, Cell)>,
    asked: Option<&[&str]>,
) -> Result<impl MapAccess<'de, Error = RowError>, RowError> {
    once(&fields, asked)?;
    Ok(Fields::new(fields.into_iter().map(|(name, cell)| (name, Value(cell)))))
}

/// The fields of [`Array`](crate::source::cell::Array).
const ARRAY: [&str; 2] = ["shape", "data"];

/// A map as a struct. If the keys are numbers, their type parses the name.
fn by_name(pairs: Vec<(Cell, Cell)>) -> Result<Vec<(Arc<str>, Cell)>, RowError> {
    let name = |key| match key {
        Cell::Text(text) => Ok(text),
        Cell::Bytes(bytes) => text(bytes),
        Cell::Bool(key) => Ok(key.to_string()),
        Cell::Int(key) => Ok(key.to_string()),
        Cell::Unsigned(key) => Ok(key.to_string()),
        _ => Err(RowError::new("the keys of the map are no texts, integers or booleans; take a `Vec` of pairs")),
    };
    pairs.into_iter().map(|(key, value)| Ok((name(key)?.into(), value))).collect()
}

/// The methods for one type of integers: a text is parsed, and any other value is passed on.
macro_rules! integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
            match self.0 {
                Cell::Raw(bytes, _) => Value(integer(&bytes)?).deserialize_any(visitor),
                _ => self.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Value {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.0 {
            Cell::Null => visitor.visit_unit(),
            Cell::Bool(value) => visitor.visit_bool(value),
            Cell::Int(value) => visitor.visit_i64(value),
            Cell::Unsigned(value) => visitor.visit_u64(value),
            Cell::F32(value) => visitor.visit_f32(value),
            Cell::F64(value) => visitor.visit_f64(value),
            Cell::Text(text) => visitor.visit_string(text),
            Cell::Bytes(bytes) | Cell::Raw(bytes, Raw::Bytes) => visitor.visit_byte_buf(bytes),
            Cell::Raw(bytes, Raw::Number) => Value(number(&bytes)?).deserialize_any(visitor),
            Cell::Raw(bytes, Raw::Text) => visitor.visit_string(text(bytes)?),
            Cell::Raw(bytes, Raw::Json) => Value(json(&bytes)?).deserialize_any(visitor),
            Cell::List(cells) => list(cells.into_iter().map(Value), visitor),
            Cell::Map(pairs) => Value(Cell::Struct(by_name(pairs)?)).deserialize_any(visitor),
            Cell::Numbers(kind, bytes) | Cell::Array(_, kind, bytes) => numbers(kind, &bytes, visitor),
            Cell::Struct(fields) => visitor.visit_map(named(fields, None)?),
        }
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.0 {
            Cell::Raw(bytes, _) => Value(number(&bytes)?).deserialize_any(visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.0 {
            Cell::F64(value) => Plain(value).deserialize_f32(visitor),
            Cell::Raw(bytes, _) => Value(number(&bytes)?).deserialize_f32(visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.0 {
            Cell::Raw(bytes, _) => visitor.visit_bool(flag(&bytes)?),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.0 {
            Cell::Null => visitor.visit_none(),
            Cell::Raw(ref json, Raw::Json) if json.trim_ascii() == b"null" => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.0 {
            Cell::Bytes(bytes) | Cell::Raw(bytes, Raw::Bytes | Raw::Text | Raw::Number) => {
                visitor.visit_string(text(bytes)?)
            }
            // A JSON text may be wanted as text.
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
        match self.0 {
            Cell::Raw(bytes, _) => visitor.visit_byte_buf(bytes),
            Cell::Numbers(Type::U8, bytes) | Cell::Array(_, Type::U8, bytes) => visitor.visit_byte_buf(bytes.into()),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.deserialize_byte_buf(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match self.0 {
            Cell::Bytes(bytes) | Cell::Raw(bytes, Raw::Bytes) => byte::list(&bytes, visitor),
            Cell::Raw(bytes, _) => Value(json(&bytes)?).deserialize_seq(visitor),
            Cell::Map(pairs) => {
                list(pairs.into_iter().map(|(key, value)| Value(Cell::List(vec![key, value]))), visitor)
            }
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
        match self.0 {
            Cell::Raw(bytes, Raw::Json | Raw::Text) => {
                let made = Value(json_for(&bytes, fields)?).deserialize_struct(name, fields, visitor);
                made.map_err(|error| error.near(|| keys(&bytes)))
            }
            Cell::Struct(cells) => visitor.visit_map(named(cells, Some(fields))?),
            Cell::Map(pairs) => visitor.visit_map(named(by_name(pairs)?, Some(fields))?),
            Cell::Bytes(bytes) | Cell::Raw(bytes, Raw::Bytes) if fields == ARRAY => {
                Value(npy::read(bytes)?).deserialize_struct(name, fields, visitor)
            }
            // Serde would use the first two values of the list as the shape and the numbers.
            Cell::List(_) | Cell::Numbers(..) if fields == ARRAY => Err(RowError::invalid_type(
                Unexpected::Seq,
                &"an array with a shape; take a `Vec`, or a `Vec<Vec<..>>` of a list of lists",
            )),
            Cell::Array(shape, kind, bytes) if fields.contains(&"shape") => {
                let shape = Cell::List(shape.into_iter().map(|side| Cell::Unsigned(side as u64)).collect());
                let data = Cell::Numbers(kind, bytes);
                visitor.visit_map(MapDeserializer::new(
                    [("shape", shape), ("data", data)].map(|(k, v)| (k, Value(v))).into_iter(),
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
        match self.0 {
            Cell::Text(text) => visitor.visit_enum(text.into_deserializer()),
            // The number of a variant.
            Cell::Int(_) | Cell::Unsigned(_) => visitor.visit_enum(u32::deserialize(self)?.into_deserializer()),
            Cell::Raw(bytes, Raw::Json) => Value(json(&bytes)?).deserialize_enum(name, variants, visitor),
            Cell::Struct(fields) if fields.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(named(fields, None)?))
            }
            Cell::Struct(_) => Err(RowError::invalid_type(Unexpected::Map, &"a text, or a struct of one field")),
            Cell::Bytes(bytes) | Cell::Raw(bytes, _) => visitor.visit_enum(text(bytes)?.trim().into_deserializer()),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { unit unit_struct map identifier }
}
