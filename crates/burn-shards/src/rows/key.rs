//! A value that rows are parted by: a label, a user.

use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};
use std::fmt;

/// A value of any type that has an order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// Null, and what is missing.
    Null,
    Bool(bool),
    Int(i128),
    Text(String),
    Bytes(Vec<u8>),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, an integer, a boolean or bytes, to part rows by")
    }

    fn visit_unit<E: Error>(self) -> Result<Key, E> {
        Ok(Key::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Key, E> {
        Ok(Key::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Key, E> {
        Ok(Key::Int(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Key, E> {
        Ok(Key::Int(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Key, E> {
        Ok(Key::Text(value.into()))
    }

    fn visit_bytes<E: Error>(self, value: &[u8]) -> Result<Key, E> {
        Ok(Key::Bytes(value.into()))
    }
}
