//! A row of any columns, as the bytes of its values.

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use std::{fmt, sync::OnceLock};

/// The columns to read. They are chosen when the program runs, but serde takes names that live as long as it.
static COLUMNS: OnceLock<&'static [&'static str]> = OnceLock::new();

/// Chooses the columns that rows have. Without it, they have all. Only the first call counts.
pub fn choose(columns: &[String]) {
    if !columns.is_empty() {
        let names: Vec<&'static str> = columns.iter().map(|name| &*String::leak(name.clone())).collect();
        COLUMNS.get_or_init(|| names.leak());
    }
}

/// The values of a row, as bytes. Numbers have 8.
#[derive(Clone, Debug, Default)]
pub struct Row(Vec<Bytes>);

impl Row {
    pub fn of(bytes: Vec<u8>) -> Self {
        Self(vec![bytes.into()])
    }

    pub fn bytes(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// The sum of all bytes, eight by eight. To make it, each byte is looked at.
    pub fn sum(&self) -> u64 {
        self.0.iter().fold(0, |all, value| {
            let (words, rest) = value.as_chunks::<8>();
            let sum = words.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word)));
            rest.iter().fold(sum, |sum, byte| sum.wrapping_add((*byte).into())).wrapping_add(all)
        })
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match COLUMNS.get() {
            Some(names) => deserializer.deserialize_struct("Row", names, Columns(names)),
            None => deserializer.deserialize_map(Columns(&[])),
        }
    }
}

/// Takes a row that has these columns, and maybe others.
struct Columns(&'static [&'static str]);

impl<'de> Visitor<'de> for Columns {
    type Value = Row;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
        let mut values = Vec::with_capacity(2);
        let mut columns = 0;
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(Onto(&mut values))?;
            columns += 1;
        }
        match columns < self.0.len() {
            true => Err(A::Error::invalid_length(columns, &&*format!("all of the columns {}", self.0.join(", ")))),
            false => Ok(Row(values)),
        }
    }
}

/// Adds a value to others. Of a struct or a list, it adds each value.
struct Onto<'a>(&'a mut Vec<Bytes>);

impl Onto<'_> {
    fn add<E>(self, bytes: impl Into<Bytes>) -> Result<(), E> {
        self.0.push(bytes.into());
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Onto<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_byte_buf(self) // bytes stay as they are; all else says what it is
    }
}

impl<'de> Visitor<'de> for Onto<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<(), E> {
        self.add(bytes)
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<(), E> {
        self.add(bytes.to_vec())
    }

    fn visit_string<E>(self, text: String) -> Result<(), E> {
        self.add(text)
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.add(text.to_owned())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.visit_u64(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.add(value.to_le_bytes().to_vec())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.add(value.to_le_bytes().to_vec())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.add(value.to_le_bytes().to_vec())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Onto(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(Onto(self.0))?;
        }
        Ok(())
    }
}
