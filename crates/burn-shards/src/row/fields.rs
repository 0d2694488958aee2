//! Named values, for structs and maps.

use super::{
    RowError,
    text::{flag, integer},
    unnamed::unnamed_structs,
};
use crate::source::cell::{Cell, twice};
use serde::{
    Deserializer,
    de::{DeserializeSeed, IntoDeserializer, MapAccess, Visitor},
    forward_to_deserialize_any,
};
use std::sync::Arc;

pub(super) struct Fields<C, V> {
    cells: C,
    next: Option<(Arc<str>, V)>,
}

impl<C: Iterator<Item = (Arc<str>, V)>, V> Fields<C, V> {
    pub(super) fn new(cells: C) -> Self {
        Self { cells, next: None }
    }
}

impl<'de, C, V> MapAccess<'de> for Fields<C, V>
where
    C: Iterator<Item = (Arc<str>, V)>,
    V: IntoDeserializer<'de, RowError>,
{
    type Error = RowError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, RowError> {
        self.next = self.cells.next();
        let Some((name, _)) = &self.next else { return Ok(None) };
        seed.deserialize(Name(name)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, RowError> {
        let (name, value) = self.next.take().ok_or_else(|| RowError::new("a value was asked for without its name"))?;
        seed.deserialize(value.into_deserializer()).map_err(|error| error.within(&name))
    }
}

/// Refuses an object with a duplicate among the keys that are asked for. `None` asks for all.
pub(super) fn once(fields: &[(Arc<str>, Cell)], asked: Option<&[&str]>) -> Result<(), RowError> {
    twice(fields, asked).map_or(Ok(()), |name| Err(RowError::new(format!("the key `{name}` is there twice"))))
}

/// The name of a field. The keys of a map may also be numbers, as in JSON.
struct Name<'a>(&'a str);

macro_rules! integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
            match integer(self.0.as_bytes())? {
                Cell::Int(number) => visitor.visit_i64(number),
                Cell::Unsigned(number) => visitor.visit_u64(number),
                _ => self.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Name<'_> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_str(self.0)
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16 deserialize_u32
        deserialize_u64
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_bool(flag(self.0.as_bytes())?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    unnamed_structs!();

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple map struct identifier ignored_any
    }
}
