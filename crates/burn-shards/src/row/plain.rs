//! A single number, or one of a list. It may be wanted as an `Option` or in a newtype, which serde's own deserializers of numbers refuse.

use super::{RowError, unnamed::unnamed_structs};
use serde::{
    Deserializer,
    de::{IntoDeserializer, Visitor},
    forward_to_deserialize_any,
};
use std::any::Any;

/// A number on its way to its type.
pub(super) struct Plain<N>(pub(super) N);

impl<'de, N: IntoDeserializer<'de, RowError> + Any> IntoDeserializer<'de, RowError> for Plain<N> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de, N: IntoDeserializer<'de, RowError> + Any> Deserializer<'de> for Plain<N> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.0.into_deserializer().deserialize_any(visitor)
    }

    /// A double-precision number is rounded, unless the result would be infinite.
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match (&self.0 as &dyn Any).downcast_ref::<f64>() {
            Some(number) if number.is_finite() && (*number as f32).is_infinite() => {
                Err(RowError::new(format!("{number:e} does not fit an f32; take an f64")))
            }
            _ => self.deserialize_any(visitor),
        }
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
