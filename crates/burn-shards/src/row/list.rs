//! Lists. A type takes every value of a list, or it is an error.

use super::{RowError, plain::Plain, real::Real};
use crate::cell::Numbers;
use serde::de::{IntoDeserializer, Visitor, value::SeqDeserializer};

/// Calls the visitor with a list. If the type takes a part of it, as an array or a tuple does, the list is too long.
pub(super) fn list<'de, V: Visitor<'de>, I: IntoIterator<Item: IntoDeserializer<'de, RowError>>>(
    values: I,
    visitor: V,
) -> Result<V::Value, RowError> {
    let mut values = SeqDeserializer::new(values.into_iter());
    let made = visitor.visit_seq(&mut values)?;
    values.end()?; // the error names both lengths
    Ok(made)
}

fn plain<'de, V: Visitor<'de>, N: IntoDeserializer<'de, RowError>>(
    numbers: Vec<N>,
    visitor: V,
) -> Result<V::Value, RowError> {
    list(numbers.into_iter().map(Plain), visitor)
}

/// Calls the visitor with a list of numbers.
pub(super) fn numbers<'de, V: Visitor<'de>>(numbers: Numbers, visitor: V) -> Result<V::Value, RowError> {
    match numbers {
        Numbers::Bool(flags) => plain(flags, visitor),
        Numbers::U8(numbers) => plain(numbers, visitor),
        Numbers::I8(numbers) => plain(numbers, visitor),
        Numbers::U16(numbers) => plain(numbers, visitor),
        Numbers::I16(numbers) => plain(numbers, visitor),
        Numbers::U32(numbers) => plain(numbers, visitor),
        Numbers::I32(numbers) => plain(numbers, visitor),
        Numbers::U64(numbers) => plain(numbers, visitor),
        Numbers::I64(numbers) => plain(numbers, visitor),
        Numbers::F32(numbers) => plain(numbers, visitor),
        Numbers::F64(numbers) => list(numbers.into_iter().map(Real), visitor),
    }
}
