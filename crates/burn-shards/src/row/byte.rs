//! The bytes of a file, for a row type that asks for a list. Each is a `u8`, and no other number.

use super::{Fault, error::RowError, list, unnamed::unnamed_structs};
use crate::source::magic::{NPY, known};
use serde::{
    Deserializer,
    de::{IntoDeserializer, Visitor},
    forward_to_deserialize_any,
};

/// Calls the visitor with the bytes of a file.
pub(super) fn list<'de, V: Visitor<'de>>(file: &[u8], visitor: V) -> Result<V::Value, RowError> {
    list::list(file.iter().map(|value| Byte { value: *value, file }), visitor)
}

struct Byte<'a> {
    value: u8,
    /// The file, which may be an array. Usually it is a sample for a whole column, so an error does not say what it is.
    file: &'a [u8],
}

impl IntoDeserializer<'_, RowError> for Byte<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The methods for number types other than `u8`.
macro_rules! no_numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RowError> {
            let is_array = known(self.file).is_some_and(|magic| magic.is == NPY.is);
            let array = if is_array { "`burn_shards::Array`, " } else { "" };
            let problem = format!("its bytes are no numbers: take {array}`bytes::Bytes` or `Vec<u8>`, and parse them");
            Err(RowError { column: None, fault: Fault::Type(format!("`u8`; {problem}")), problem })
        }
    )*};
}

impl<'de> Deserializer<'de> for Byte<'_> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_u8(self.value)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_some(self)
    }

    no_numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
    }

    unnamed_structs!();

    forward_to_deserialize_any! {
        bool u8 char str string bytes byte_buf unit unit_struct seq tuple map struct enum identifier ignored_any
    }
}
