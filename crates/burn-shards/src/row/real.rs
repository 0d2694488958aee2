//! Numbers of double precision.

use super::{RowError, unnamed::unnamed_structs};
use serde::{
    Deserializer,
    de::{IntoDeserializer, Visitor},
    forward_to_deserialize_any,
};

/// A number on its way to its type. It is rounded to an `f32`, unless that would be infinite.
pub(super) struct Real(pub(super) f64);

impl IntoDeserializer<'_, RowError> for Real {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Real {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_f64(self.0)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        if self.0.is_finite() && (self.0 as f32).is_infinite() {
            return Err(RowError::new(format!("{:e} does not fit an f32; take an f64", self.0)));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_some(self)
    }

    unnamed_structs!();

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f64 char str string bytes byte_buf unit unit_struct seq tuple
        map struct enum identifier ignored_any
    }
}
