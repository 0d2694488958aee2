//! A value of any type that is compared bit for bit.

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use std::fmt;

/// A value as a deserializer that is asked for nothing gives it.
#[derive(Debug, Clone)]
pub(crate) enum Exact {
    Null,
    Bool(bool),
    Int(i128),
    F32(f32),
    F64(f64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Exact>),
    Struct(Vec<(String, Exact)>),
}

/// Floats are equal if their bits are, or if neither is a number. The order of fields does not count.
impl PartialEq for Exact {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(two)) => one == two,
            (Self::Int(one), Self::Int(two)) => one == two,
            (Self::F32(one), Self::F32(two)) => one.to_bits() == two.to_bits() || (one.is_nan() && two.is_nan()),
            (Self::F64(one), Self::F64(two)) => one.to_bits() == two.to_bits() || (one.is_nan() && two.is_nan()),
            (Self::Text(one), Self::Text(two)) => one == two,
            (Self::Bytes(one), Self::Bytes(two)) => one == two,
            (Self::List(one), Self::List(two)) => one == two,
            (Self::Struct(one), Self::Struct(two)) => {
                let field = |name: &str| two.iter().find(|(other, _)| other == name).map(|(_, value)| value);
                one.len() == two.len() && one.iter().all(|(name, value)| field(name) == Some(value))
            }
            _ => false,
        }
    }
}

impl<'de> Deserialize<'de> for Exact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Take)
    }
}

struct Take;

impl<'de> Visitor<'de> for Take {
    type Value = Exact;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E: Error>(self) -> Result<Exact, E> {
        Ok(Exact::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Exact, E> {
        Ok(Exact::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Exact, E> {
        Ok(Exact::Int(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Exact, E> {
        Ok(Exact::Int(value.into()))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Exact, E> {
        Ok(Exact::Int(value))
    }

    fn visit_f32<E: Error>(self, value: f32) -> Result<Exact, E> {
        Ok(Exact::F32(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Exact, E> {
        Ok(Exact::F64(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Exact, E> {
        Ok(Exact::Text(value.into()))
    }

    fn visit_bytes<E: Error>(self, value: &[u8]) -> Result<Exact, E> {
        Ok(Exact::Bytes(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Exact, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element()? {
            list.push(value);
        }
        Ok(Exact::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Exact, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Exact::Struct(fields))
    }
}
