//! Which columns a row type asks for. Its `Deserialize` is asked, with a deserializer that has no data.

use crate::{
    error::DataError,
    row::{RowError, unnamed_structs},
};
use serde::{
    Deserializer,
    de::{DeserializeOwned, Visitor},
    forward_to_deserialize_any,
};
use std::cell::Cell;

/// What a row type asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Values with these names. The names of fields that may be missing are among them, and aliases too.
    Fields(&'static [&'static str]),
    /// Everything: a map, or a struct with `#[serde(flatten)]`.
    All,
    /// This number of values without names.
    Tuple(usize),
}

/// Asks a row type.
///
/// # Errors
/// If it is a single value, which has neither names nor places.
pub(crate) fn asked<T: DeserializeOwned>() -> Result<Asked, DataError> {
    let asked = Cell::new(None);
    let _ = T::deserialize(Probe { asked: &asked }); // always an error: there are no data
    asked.get().ok_or_else(|| DataError::Option {
        option: "Rows<T>",
        problem: "the row type is neither a struct nor a tuple".into(),
        advice: "derive `Deserialize` for a struct whose fields are named as the columns, or take a tuple and `.columns([..])`"
            .into(),
    })
}

struct Probe<'a> {
    asked: &'a Cell<Option<Asked>>,
}

impl Probe<'_> {
    fn note<V>(self, asked: Asked) -> Result<V, RowError> {
        self.asked.set(Some(asked));
        Err(RowError::new("no data"))
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RowError> {
        Err(RowError::new("no data"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, RowError> {
        self.note(Asked::Fields(fields))
    }

    fn deserialize_map<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RowError> {
        self.note(Asked::All)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, _: V) -> Result<V::Value, RowError> {
        self.note(Asked::Tuple(len))
    }

    unnamed_structs!();

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::HashMap;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its names are asked for")]
    struct Row {
        #[serde(rename = "seg.png", alias = "mask")]
        segments: Vec<u8>,
        label: Option<i64>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its names are asked for")]
    struct Open {
        label: i64,
        #[serde(flatten)]
        rest: HashMap<String, String>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its names are asked for")]
    struct Wrapped(Row);

    #[test]
    fn structs_ask_for_names_and_tuples_for_places() {
        assert_eq!(asked::<Row>().unwrap(), Asked::Fields(&["mask", "seg.png", "label"]));
        assert_eq!(asked::<Wrapped>().unwrap(), Asked::Fields(&["mask", "seg.png", "label"]));
        assert_eq!(asked::<(String, u8)>().unwrap(), Asked::Tuple(2));
        assert_eq!(asked::<Open>().unwrap(), Asked::All);
        assert_eq!(asked::<HashMap<String, i64>>().unwrap(), Asked::All);
        assert!(asked::<u8>().unwrap_err().to_string().contains("neither a struct nor a tuple"));
    }
}
