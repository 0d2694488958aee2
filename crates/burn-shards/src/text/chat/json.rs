//! JSON as Python's `json.dumps` writes it, for the filter `tojson`.

use minijinja::{Error, ErrorKind, Value as Jinja, value::Kwargs};
use serde::Serialize;
use serde_json::{
    Serializer, Value,
    ser::{Formatter, PrettyFormatter},
};
use std::io::{self, Write};

/// The filter `tojson` of `transformers`: `json.dumps`, without the escapes for HTML that Jinja's own filter has.
pub(super) fn tojson(value: &Jinja, options: Kwargs) -> Result<String, Error> {
    let wrong = |error: serde_json::Error| Error::new(ErrorKind::BadSerialization, error.to_string());
    let mut value = serde_json::to_value(value).map_err(wrong)?;
    if options.get::<Option<bool>>("ensure_ascii")? == Some(true) {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "`tojson` writes letters as they are: leave out `ensure_ascii`",
        ));
    }
    if options.get::<Option<bool>>("sort_keys")? == Some(true) {
        value.sort_all_objects();
    }
    let indent = options.get("indent")?;
    options.assert_all_used()?;
    to_json(&value, indent).map_err(wrong)
}

/// Writes a value on one line, or with this number of spaces for each level.
fn to_json(value: &Value, indent: Option<usize>) -> serde_json::Result<String> {
    let mut text = Vec::new();
    match indent.map(|spaces| " ".repeat(spaces)) {
        None => value.serialize(&mut Serializer::with_formatter(&mut text, Line))?,
        Some(indent) => {
            let formatter = PrettyFormatter::with_indent(indent.as_bytes());
            value.serialize(&mut Serializer::with_formatter(&mut text, formatter))?;
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// JSON on one line, with the spaces that Python writes.
struct Line;

impl Formatter for Line {
    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.begin_array_value(to, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_as_python_writes_it() {
        let value = json!({"b": [1, 2.5, -1.0], "a": {"x": [], "y": {}}, "t": "<é \"\n\u{1}😀>", "n": null});
        assert_eq!(
            to_json(&value, None).unwrap(),
            "{\"b\": [1, 2.5, -1.0], \"a\": {\"x\": [], \"y\": {}}, \"t\": \"<é \\\"\\n\\u0001😀>\", \"n\": null}"
        );
        assert_eq!(
            to_json(&json!({"a": [1, {"b": "é"}], "c": [], "d": [[]]}), Some(2)).unwrap(),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"é\"\n    }\n  ],\n  \"c\": [],\n  \"d\": [\n    []\n  ]\n}"
        );
    }
}
