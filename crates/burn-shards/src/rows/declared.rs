//! Which fields a row type has beside `#[serde(flatten)]`. Such a type does not tell their names, but takes their
//! values by type.

use crate::row::RowError;
use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, Visitor},
    forward_to_deserialize_any,
};
use std::cell::Cell;

/// Whether a row type that asks for everything has a field of this name. A map takes the values of all names alike, and has
/// none.
pub(crate) fn declares<T: DeserializeOwned>(name: &str) -> bool {
    by_type::<T>(name) && !by_type::<T>("\0 no field's name")
}

/// Whether the value of a name is taken by its type, and not as whatever it is.
fn by_type<T: DeserializeOwned>(name: &str) -> bool {
    let asked = Cell::new(false);
    let _ = T::deserialize(Probe { name, asked: &asked }); // always an error: there are no data
    asked.get()
}

/// A deserializer of a row with one column, whose value is an [`Asked`].
struct Probe<'a> {
    name: &'a str,
    asked: &'a Cell<bool>,
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_map(One { name: Some(self.name), asked: self.asked })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct One<'a> {
    name: Option<&'a str>,
    asked: &'a Cell<bool>,
}

impl<'de> MapAccess<'de> for One<'_> {
    type Error = RowError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, RowError> {
        self.name.take().map(|name| seed.deserialize(name.into_deserializer())).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, RowError> {
        seed.deserialize(Asked(self.asked))
    }
}

/// A deserializer of a value. It notes whether it is asked for a certain type.
struct Asked<'a>(&'a Cell<bool>);

impl Asked<'_> {
    fn no_data<V>(self) -> Result<V, RowError> {
        Err(RowError::new("no data"))
    }
}

macro_rules! types {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RowError> {
            self.0.set(true);
            self.no_data()
        }
    )*};
}

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RowError> {
        self.no_data()
    }

    types! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option deserialize_seq
        deserialize_map
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, _: V) -> Result<V::Value, RowError> {
        self.0.set(true);
        self.no_data()
    }

    forward_to_deserialize_any! { unit unit_struct tuple tuple_struct struct enum identifier ignored_any }
}
