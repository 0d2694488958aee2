//! From a line to a row.

use super::words::{Mended, NUMBER};
use crate::{
    cell::{Cell, Record, twice},
    source::Wanted,
};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::de::SliceRead;
use std::{fmt, str, sync::Arc};

/// Parses a line. The wanted keys are kept, in the order of the line.
pub(super) fn parse(line: &[u8], wanted: &Wanted) -> Result<Record, serde_json::Error> {
    lenient(line, |parser| parser.deserialize_map(Row(wanted)))
}

/// Parses a text that is one value. Of its objects all keys are kept, also those that are there twice.
pub(crate) fn value(text: &[u8]) -> Result<Cell, serde_json::Error> {
    lenient(text, |parser| Value(&Wanted::All).deserialize(parser))
}

/// Reads a whole text. `NaN` and the infinities are floats, as Python writes them.
fn lenient<T>(
    text: &[u8],
    read: impl Fn(&mut serde_json::Deserializer<SliceRead>) -> Result<T, serde_json::Error>,
) -> Result<T, serde_json::Error> {
    let whole = |text: &[u8]| {
        let mut parser = serde_json::Deserializer::from_slice(text);
        let value = read(&mut parser)?;
        parser.end()?;
        Ok(value)
    };
    whole(text).or_else(|error| match Mended::of(text) {
        Some(mended) => whole(&mended.text).map_err(|error| mended.error(error)),
        None => Err(error),
    })
}

/// An object with the wanted keys.
struct Row<'a>(&'a Wanted);

impl<'de> Visitor<'de> for Row<'_> {
    type Value = Record;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record, A::Error> {
        let first = map.next_key_seed(Key(self.0))?;
        if matches!(first, Some(Known::Number)) {
            return Err(A::Error::custom("invalid type: a number, expected an object"));
        }
        let record = fields(first, &mut map, self.0)?;
        match twice(&record, None) {
            Some(name) => Err(A::Error::custom(format_args!("the key `{name}` is there twice"))),
            None => Ok(record),
        }
    }
}

/// Reads the values of an object whose first key was read.
fn fields<'de, 'w, A: MapAccess<'de>>(
    first: Option<Known<'w>>,
    map: &mut A,
    wanted: &'w Wanted,
) -> Result<Record, A::Error> {
    let (mut record, mut next) = (Record::new(), first);
    while let Some(key) = next {
        match key {
            Known::Wanted(name, wanted) => record.push((name, map.next_value_seed(Value(wanted))?)),
            Known::Number | Known::Other => drop(map.next_value::<IgnoredAny>()?),
        }
        next = map.next_key_seed(Key(wanted))?;
    }
    Ok(record)
}

/// What a key is.
enum Known<'w> {
    Wanted(Arc<str>, &'w Wanted),
    Number,
    Other,
}

/// Reads a key.
struct Key<'w>(&'w Wanted);

impl<'de, 'w> DeserializeSeed<'de> for Key<'w> {
    type Value = Known<'w>;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Known<'w>, D::Error> {
        key.deserialize_bytes(self) // a key that is no text is not wanted
    }
}

impl<'w> Visitor<'_> for Key<'w> {
    type Value = Known<'w>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Known<'w>, E> {
        self.visit_bytes(key.as_bytes())
    }

    fn visit_bytes<E: Error>(self, key: &[u8]) -> Result<Known<'w>, E> {
        Ok(match self.0 {
            _ if key == NUMBER.as_bytes() => Known::Number,
            Wanted::All => match str::from_utf8(key) {
                Ok(key) => Known::Wanted(key.into(), self.0),
                Err(_) => return Err(E::custom("a key is not in UTF-8")),
            },
            Wanted::Some(names) => match names.iter().find(|(name, _)| name.as_bytes() == key) {
                Some((name, fields)) => Known::Wanted(Arc::clone(name), fields),
                None => Known::Other,
            },
        })
    }
}

/// Any value. Of objects, also those in lists, only the wanted keys are kept.
struct Value<'w>(&'w Wanted);

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = Cell;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Cell, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = Cell;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Cell, E> {
        Ok(Cell::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Cell, E> {
        Ok(Cell::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Cell, E> {
        Ok(Cell::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Cell, E> {
        Ok(i64::try_from(value).map_or(Cell::Unsigned(value), Cell::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Cell, E> {
        Ok(Cell::F64(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Cell, E> {
        Ok(Cell::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Cell, A::Error> {
        let mut cells = Vec::new();
        while let Some(cell) = list.next_element_seed(Value(self.0))? {
            cells.push(cell);
        }
        Ok(Cell::List(cells))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cell, A::Error> {
        match map.next_key_seed(Key(self.0))? {
            Some(Known::Number) => number(&map.next_value::<String>()?),
            first => fields(first, &mut map, self.0).map(Cell::Struct),
        }
    }
}

fn number<E: Error>(text: &str) -> Result<Cell, E> {
    let whole = || text.parse().map(Cell::Int).or_else(|_| text.parse().map(Cell::Unsigned));
    whole().or_else(|_| text.parse().map(Cell::F64)).map_err(|_| E::custom(format_args!("`{text}` is no number")))
}
