//! Lists. A type must take every value of a list.

use super::{RowError, plain::Plain};
use crate::source::cell::Type;
use burn::tensor::f16;
use serde::de::{IntoDeserializer, Visitor, value::SeqDeserializer};
use std::any::Any;

/// Calls the visitor with a list. If the type, such as an array or a tuple, takes only a part, the list is too long.
pub(super) fn list<'de, V: Visitor<'de>, I: IntoIterator<Item: IntoDeserializer<'de, RowError>>>(
    values: I,
    visitor: V,
) -> Result<V::Value, RowError> {
    let mut values = SeqDeserializer::new(values.into_iter());
    let made = visitor.visit_seq(&mut values)?;
    values.end()?; // its error names both lengths
    Ok(made)
}

fn plain<'de, V: Visitor<'de>, N: IntoDeserializer<'de, RowError> + Any>(
    numbers: impl IntoIterator<Item = N>,
    visitor: V,
) -> Result<V::Value, RowError> {
    list(numbers.into_iter().map(Plain), visitor)
}

/// Calls the visitor with a list of numbers, which are little-endian. Half floats become `f32`.
pub(super) fn numbers<'de, V: Visitor<'de>>(kind: Type, bytes: &[u8], visitor: V) -> Result<V::Value, RowError> {
    match kind {
        Type::Bool => plain(bytes.iter().map(|byte| *byte != 0), visitor),
        Type::U8 => plain(each(bytes, u8::from_le_bytes), visitor),
        Type::I8 => plain(each(bytes, i8::from_le_bytes), visitor),
        Type::U16 => plain(each(bytes, u16::from_le_bytes), visitor),
        Type::I16 => plain(each(bytes, i16::from_le_bytes), visitor),
        Type::F16 => plain(each(bytes, |bytes| f16::from_le_bytes(bytes).to_f32()), visitor),
        Type::U32 => plain(each(bytes, u32::from_le_bytes), visitor),
        Type::I32 => plain(each(bytes, i32::from_le_bytes), visitor),
        Type::F32 => plain(each(bytes, f32::from_le_bytes), visitor),
        Type::U64 => plain(each(bytes, u64::from_le_bytes), visitor),
        Type::I64 => plain(each(bytes, i64::from_le_bytes), visitor),
        Type::F64 => plain(each(bytes, f64::from_le_bytes), visitor),
    }
}

fn each<T, const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> impl Iterator<Item = T> {
    bytes.as_chunks().0.iter().map(move |bytes| number(*bytes))
}
