//! From the cells of a row to the row's type, by its `Deserialize`.

mod byte;
pub(crate) mod decode;
mod error;
mod fields;
mod list;
mod misfit;
mod nearest;
mod npy;
mod plain;
#[cfg(test)]
mod tests;
mod text;
mod unnamed;
mod value;

use super::source::cell::{Cell, Record};
pub(crate) use error::{Fault, RowError};
use fields::Fields;
pub(crate) use misfit::misfit;
pub(crate) use nearest::{names, nearest, structs};
use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error as _, SeqAccess, Visitor},
    forward_to_deserialize_any,
};
use std::{mem, sync::Arc};
pub(crate) use unnamed::unnamed_structs;
use value::Value;

/// Makes a row. `columns` names the values of a tuple.
pub(crate) fn row<T: DeserializeOwned>(record: Record, columns: Option<&[Arc<str>]>) -> Result<T, RowError> {
    #[cfg(feature = "images")]
    let key = record.iter().find(|(name, _)| **name == *crate::tar::KEY).and_then(|(_, key)| match key {
        Cell::Text(key) => Some(key.clone()),
        _ => None,
    });
    #[cfg(feature = "images")]
    let _until_made = key.as_deref().map(burn_augment::for_loader::RowScope::with_key);
    T::deserialize(RowDeserializer { record, columns })
}

struct RowDeserializer<'a> {
    record: Record,
    columns: Option<&'a [Arc<str>]>,
}

impl<'de> Deserializer<'de> for RowDeserializer<'_> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_map(Fields::new(self.record.into_iter().map(|(name, cell)| (name, Value(cell)))))
    }

    fn deserialize_tuple<V: Visitor<'de>>(mut self, _len: usize, visitor: V) -> Result<V::Value, RowError> {
        let mut record = mem::take(&mut self.record);
        let columns = self.columns.unwrap_or_default();
        let cells = columns.iter().map(|name| {
            let cell = record.iter_mut().find(|(there, _)| there == name);
            (Arc::clone(name), cell.map(|(_, cell)| Value(mem::replace(cell, Cell::Null))))
        });
        let mut places = Places { cells };
        let made = visitor.visit_seq(&mut places)?;
        match (places.cells.len(), columns.len()) {
            (0, _) => Ok(made),
            (left, all) => Err(RowError::invalid_length(all, &format!("{} columns", all - left).as_str())),
        }
    }

    unnamed_structs!();

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        map struct enum identifier ignored_any
    }
}

/// Values by position, for tuples. `None` is a missing value.
struct Places<C> {
    cells: C,
}

impl<'de, C: Iterator<Item = (Arc<str>, Option<Value>)>> SeqAccess<'de> for Places<C> {
    type Error = RowError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, RowError> {
        let Some((name, value)) = self.cells.next() else { return Ok(None) };
        match value {
            Some(value) => seed.deserialize(value).map(Some).map_err(|error| error.within(&name)),
            None => seed.deserialize(Value(Cell::Null)).map(Some).map_err(|_| RowError::missing(&name)),
        }
    }
}
