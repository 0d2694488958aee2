//! What a row type asks for. To find out, its `Deserialize` runs with a deserializer that has no data, only one name at each level.

use crate::{
    row::{RowError, unnamed_structs},
    source::Selection,
};
use serde::{
    Deserializer,
    de::{
        DeserializeOwned, IntoDeserializer, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use std::{cell::Cell, iter, sync::Arc};

/// The depth to which fields are examined. A type may contain itself, so deeper fields are all wanted.
const DEPTH: usize = 4;
/// How many nested lists and options are examined.
const LAYERS: u8 = 64;

/// What a type asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demand {
    /// Values with these names, including optional fields and aliases.
    Fields(&'static [&'static str]),
    /// Everything: a map, or a struct with `#[serde(flatten)]`.
    All,
    /// This number of values without names.
    Tuple(usize),
    /// A single value, without names or positions.
    Value,
}

/// What a row type asks for.
pub(crate) fn asked<T: DeserializeOwned>() -> Demand {
    demand::<T>(&[], 0).unwrap_or(Demand::Value)
}

/// What a row type with named fields wants of the values of these columns.
pub(crate) fn nested<T: DeserializeOwned>(columns: &[(Arc<str>, Selection)]) -> Selection {
    let inside = |(name, _): &(Arc<str>, Selection)| (Arc::clone(name), inside::<T>(&mut vec![Arc::clone(name)]));
    Selection::Some(columns.iter().map(inside).collect())
}

/// What the row type wants inside the value at this path of names. A value that is not a struct is wanted whole.
fn inside<T: DeserializeOwned>(path: &mut Vec<Arc<str>>) -> Selection {
    let (Some(Demand::Fields(fields)), 0..=DEPTH) = (demand::<T>(path, LAYERS), path.len()) else {
        return Selection::All;
    };
    let field = |name: &&'static str| {
        let name: Arc<str> = Arc::from(*name);
        path.push(Arc::clone(&name));
        let wanted = inside::<T>(path);
        path.pop();
        (name, wanted)
    };
    Selection::Some(fields.iter().map(field).collect())
}

/// Whether a row type with `#[serde(flatten)]`, which does not reveal its names, has a field with this name: such a field asks for its own
/// type. A map treats all names alike, so it has no such field.
pub(crate) fn declares<T: DeserializeOwned>(name: &str) -> bool {
    let is_typed = |name: &str| demand::<T>(&[name.into()], LAYERS) == Some(Demand::Value);
    is_typed(name) && !is_typed("\0 no field's name")
}

/// What a type asks for at this path of names. `None` if that is unclear.
fn demand<T: DeserializeOwned>(path: &[Arc<str>], left: u8) -> Option<Demand> {
    let demand = Cell::new(None);
    let _ = T::deserialize(Probe { path, demand: &demand, left }); // always an error, because there are no data
    demand.get()
}

/// A deserializer without data, and the rest of the path to the examined value.
#[derive(Clone, Copy)]
struct Probe<'a> {
    path: &'a [Arc<str>],
    demand: &'a Cell<Option<Demand>>,
    /// How many more nested lists and options are examined, because a type may contain itself through them.
    left: u8,
}

impl Probe<'_> {
    fn deeper(self) -> Result<Self, RowError> {
        self.demand.set(Some(Demand::Value));
        self.left.checked_sub(1).map_or_else(no_data, |left| Ok(Self { left, ..self }))
    }

    /// Gives the next name of the path, or notes at its end what is asked for.
    fn named<'de, V: Visitor<'de>>(self, visitor: V, demand: Demand) -> Result<V::Value, RowError> {
        let Some((name, path)) = self.path.split_first() else {
            self.demand.set(Some(demand));
            return no_data();
        };
        visitor.visit_map(MapDeserializer::new(iter::once((&**name, Self { path, ..self }))))
    }
}

fn no_data<V>() -> Result<V, RowError> {
    Err(RowError::new("no data"))
}

macro_rules! values {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RowError> {
            self.demand.set(Some(Demand::Value));
            no_data()
        }
    )*};
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RowError> {
        no_data()
    }

    values! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_some(self.deeper()?)
    }

    /// A list has the path of its elements.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_seq(SeqDeserializer::new(iter::once(self.deeper()?)))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        self.named(visitor, Demand::Fields(fields))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        self.named(visitor, Demand::All)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, _: V) -> Result<V::Value, RowError> {
        if self.path.is_empty() {
            self.demand.set(Some(Demand::Tuple(len)));
        }
        no_data()
    }

    unnamed_structs!();

    forward_to_deserialize_any! { unit unit_struct enum identifier ignored_any }
}

impl IntoDeserializer<'_, RowError> for Probe<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests;
