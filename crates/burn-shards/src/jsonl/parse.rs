//! From a line to a row.

use super::words::{MendedText, NUMBER};
use crate::source::{
    Selection,
    cell::{Cell, Record, twice},
};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::de::SliceRead;
use std::{fmt, str, sync::Arc};

/// Parses a line. The wanted keys are kept, in the order of the line.
pub(super) fn parse(line: &[u8], wanted: &Selection) -> Result<Record, serde_json::Error> {
    lenient(line, |parser| parser.deserialize_map(ObjectVisitor(wanted)))
}

/// Parses a text that is one value. All keys of its objects are kept, including duplicates.
pub(crate) fn value(text: &[u8]) -> Result<Cell, serde_json::Error> {
    lenient(text, |parser| ValueSeed(&Selection::All, false).deserialize(parser))
}

/// Parses a text that is one value, for a struct that asks for these names. If the value is an object, its other keys are dropped, except
/// the first one, which is kept with the value null: a type may refuse unknown keys.
pub(crate) fn value_for(text: &[u8], names: &[&str]) -> Result<Cell, serde_json::Error> {
    let wanted = Selection::of_names(names.iter().map(|name| Arc::from(*name)));
    lenient(text, |parser| ValueSeed(&wanted, true).deserialize(parser))
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
    whole(text).or_else(|error| match MendedText::of(text) {
        Some(mended) => whole(&mended.text).map_err(|error| mended.error(error)),
        None => Err(error),
    })
}

/// An object with the wanted keys.
struct ObjectVisitor<'w>(&'w Selection);

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = Record;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Record, A::Error> {
        let first = map.next_key_seed(KeySeed(self.0, false))?;
        if matches!(first, Some(KeyUse::Number)) {
            return Err(A::Error::custom("invalid type: a number, expected an object"));
        }
        let record = fields(first, &mut map, self.0, false)?;
        match twice(&record, None) {
            Some(name) => Err(A::Error::custom(format_args!("the key `{name}` is there twice"))),
            None => Ok(record),
        }
    }
}

/// Reads the values of an object after its first key. With `keeps_other`, the first unwanted key is kept too.
fn fields<'de, 'w, A: MapAccess<'de>>(
    first: Option<KeyUse<'w>>,
    map: &mut A,
    wanted: &'w Selection,
    mut keeps_other: bool,
) -> Result<Record, A::Error> {
    let (mut record, mut next) = (Record::new(), first);
    while let Some(key) = next {
        match key {
            KeyUse::Wanted(name, fields) => record.push((name, map.next_value_seed(ValueSeed(fields, false))?)),
            KeyUse::Unasked(name) => {
                map.next_value::<IgnoredAny>()?;
                record.push((name, Cell::Null));
                keeps_other = false;
            }
            KeyUse::Number | KeyUse::Other => drop(map.next_value::<IgnoredAny>()?),
        }
        next = map.next_key_seed(KeySeed(wanted, keeps_other))?;
    }
    Ok(record)
}

/// How a key is used.
enum KeyUse<'w> {
    Wanted(Arc<str>, &'w Selection),
    /// The first unwanted key, if it is kept.
    Unasked(Arc<str>),
    Number,
    Other,
}

/// Reads a key. With `true`, it is kept even if unwanted.
struct KeySeed<'w>(&'w Selection, bool);

impl<'de, 'w> DeserializeSeed<'de> for KeySeed<'w> {
    type Value = KeyUse<'w>;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<KeyUse<'w>, D::Error> {
        key.deserialize_bytes(self) // a key that is not UTF-8 is unwanted
    }
}

impl<'w> Visitor<'_> for KeySeed<'w> {
    type Value = KeyUse<'w>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<KeyUse<'w>, E> {
        self.visit_bytes(key.as_bytes())
    }

    fn visit_bytes<E: Error>(self, key: &[u8]) -> Result<KeyUse<'w>, E> {
        Ok(match self.0 {
            _ if key == NUMBER.as_bytes() => KeyUse::Number,
            Selection::All => KeyUse::Wanted(text(key)?, &Selection::All),
            Selection::Some(names) => match names.iter().find(|(name, _)| name.as_bytes() == key) {
                Some((name, fields)) => KeyUse::Wanted(Arc::clone(name), fields),
                None if self.1 => KeyUse::Unasked(text(key)?),
                None => KeyUse::Other,
            },
        })
    }
}

fn text<E: Error>(key: &[u8]) -> Result<Arc<str>, E> {
    str::from_utf8(key).map(Arc::from).map_err(|_| E::custom("a key is not in UTF-8"))
}

/// Any value. Objects, including those in lists, keep only the wanted keys. With `true`, the value is for a struct: the first other key is
/// kept too, and objects in a list are kept whole.
struct ValueSeed<'w>(&'w Selection, bool);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Cell;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Cell, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
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
        let wanted = if self.1 { &Selection::All } else { self.0 };
        let mut cells = Vec::new();
        while let Some(cell) = list.next_element_seed(ValueSeed(wanted, false))? {
            cells.push(cell);
        }
        Ok(Cell::List(cells))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cell, A::Error> {
        match map.next_key_seed(KeySeed(self.0, self.1))? {
            Some(KeyUse::Number) => number(&map.next_value::<String>()?),
            first => fields(first, &mut map, self.0, self.1).map(Cell::Struct),
        }
    }
}

fn number<E: Error>(text: &str) -> Result<Cell, E> {
    let whole = || text.parse().map(Cell::Int).or_else(|_| text.parse().map(Cell::Unsigned));
    whole().or_else(|_| text.parse().map(Cell::F64)).map_err(|_| E::custom(format_args!("`{text}` is no number")))
}
