//! A value that rows are parted by: a label, a user.

use bytes::Bytes;

/// A value of any type that has an order. What is null or missing has none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(untagged, expecting = "rows are parted by texts, integers, booleans or bytes, and it is none of them")]
pub(super) enum Key {
    Bool(bool),
    Int(i64),
    /// More than an `i64` holds.
    Unsigned(u64),
    Text(String),
    Bytes(Bytes),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_of_every_type_but_floats_and_structs() {
        let key = |json: &str| serde_json::from_str::<Option<Key>>(json).map_err(|error| error.to_string());
        assert_eq!((key("null"), key("true")), (Ok(None), Ok(Some(Key::Bool(true)))));
        assert_eq!(key("-7"), Ok(Some(Key::Int(-7))));
        assert_eq!(key("18446744073709551615"), Ok(Some(Key::Unsigned(u64::MAX))));
        assert_eq!(key("\"7\""), Ok(Some(Key::Text("7".into()))));
        for wrong in ["0.5", "{\"a\": 1}", "[300]"] {
            assert!(key(wrong).unwrap_err().contains("rows are parted by texts, integers"), "{wrong}");
        }
    }
}
