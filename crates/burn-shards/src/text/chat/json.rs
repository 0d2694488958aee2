//! JSON as Python's `json.dumps` writes it, for the filter `tojson`.

use super::{
    arguments::{named, repeated},
    python::float,
};
use minijinja::{
    Error, ErrorKind, Value as Jinja,
    value::{Rest, ValueKind, ValueOrKwargs},
};

/// How values are written.
struct Form {
    ensure_ascii: bool,
    sort_keys: bool,
    /// What stands before a value for each list or object that it is in, if each value has a line.
    indent: Option<String>,
    /// What is between values, and between a name and its value.
    separators: [String; 2],
}

/// The filter `tojson` of `transformers`: `json.dumps`, without the escapes for HTML that Jinja's own filter has.
pub(super) fn tojson(value: &Jinja, options: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let [ascii, indent, separators, sort] =
        named(&options.into_values(), ["ensure_ascii", "indent", "separators", "sort_keys"])?;
    let indent = match indent.as_str() {
        Some(indent) => Some(indent.to_string()),
        None if indent.is_none() || indent.is_undefined() => None,
        None => Some(repeated(' ', usize::try_from(i64::try_from(indent)?).unwrap_or(0))?),
    };
    let separators: Vec<String> = separators.try_iter()?.map(|part| part.to_string()).collect();
    let separators = separators.try_into().unwrap_or_else(|_| {
        let comma = if indent.is_some() { "," } else { ", " };
        [comma.into(), ": ".into()]
    });
    let form = Form { ensure_ascii: ascii.is_true(), sort_keys: sort.is_true(), indent, separators };
    let mut text = String::new();
    form.write(value, 0, &mut text)?;
    Ok(text)
}

impl Form {
    fn write(&self, value: &Jinja, depth: usize, to: &mut String) -> Result<(), Error> {
        match value.kind() {
            ValueKind::String => self.quote(value.as_str().unwrap_or_default(), to),
            ValueKind::Map => {
                let mut names: Vec<Jinja> = value.try_iter()?.collect();
                if self.sort_keys {
                    names.sort();
                }
                self.write_all(names, ["{", "}"], depth, to, |name, to| {
                    match name.as_str() {
                        Some(text) => self.quote(text, to),
                        None => self.quote(&scalar(&name)?, to),
                    }
                    to.push_str(&self.separators[1]);
                    self.write(&value.get_item(&name)?, depth + 1, to)
                })?;
            }
            ValueKind::Seq | ValueKind::Iterable if value.len().is_some() => {
                self.write_all(value.try_iter()?.collect(), ["[", "]"], depth, to, |item, to| {
                    self.write(&item, depth + 1, to)
                })?;
            }
            _ => to.push_str(&scalar(value)?),
        }
        Ok(())
    }

    /// Writes the values of a list or an object.
    fn write_all(
        &self,
        items: Vec<Jinja>,
        ends: [&str; 2],
        depth: usize,
        to: &mut String,
        write: impl Fn(Jinja, &mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let line = |depth: usize, to: &mut String| {
            if let Some(indent) = &self.indent {
                to.push('\n');
                to.push_str(&indent.repeat(depth));
            }
        };
        to.push_str(ends[0]);
        let is_empty = items.is_empty();
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                to.push_str(&self.separators[0]);
            }
            line(depth + 1, to);
            write(item, to)?;
        }
        if !is_empty {
            line(depth, to);
        }
        to.push_str(ends[1]);
        Ok(())
    }

    fn quote(&self, text: &str, to: &mut String) {
        to.push('"');
        for letter in text.chars() {
            match letter {
                '"' => to.push_str("\\\""),
                '\\' => to.push_str("\\\\"),
                '\n' => to.push_str("\\n"),
                '\r' => to.push_str("\\r"),
                '\t' => to.push_str("\\t"),
                '\u{8}' => to.push_str("\\b"),
                '\u{c}' => to.push_str("\\f"),
                _ if letter < ' ' || self.ensure_ascii && letter > '~' => {
                    let mut units = [0; 2];
                    to.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
                }
                _ => to.push(letter),
            }
        }
        to.push('"');
    }
}

/// A value that is no text, list or object.
fn scalar(value: &Jinja) -> Result<String, Error> {
    match value.kind() {
        ValueKind::None => Ok("null".into()),
        ValueKind::Bool => Ok(value.is_true().to_string()),
        ValueKind::Number if value.is_integer() => Ok(value.to_string()),
        ValueKind::Number => Ok(match f64::try_from(value.clone())? {
            number if number.is_nan() => "NaN".into(),
            f64::INFINITY => "Infinity".into(),
            f64::NEG_INFINITY => "-Infinity".into(),
            number => float(number),
        }),
        kind => Err(Error::new(ErrorKind::BadSerialization, format!("JSON has no values of the kind `{kind}`"))),
    }
}

#[cfg(test)]
mod tests {
    use minijinja::{Environment, context, value::Serde};
    use serde_json::json;

    fn made(value: serde_json::Value, options: &str) -> Result<String, minijinja::Error> {
        let mut jinja = Environment::new();
        jinja.add_filter("tojson", super::tojson);
        jinja.render_str(&format!("{{{{ value | tojson{options} }}}}"), context! { value => Serde(value) })
    }

    #[test]
    fn json_is_as_python_writes_it() {
        let value =
            json!({"b": [1, 2.5, -1.0, 1e-7, 1e16], "a": {"x": [], "y": {}}, "t": "<é \"\n\u{1}😀>", "n": null});
        assert_eq!(
            made(value, "").unwrap(),
            "{\"b\": [1, 2.5, -1.0, 1e-07, 1e+16], \"a\": {\"x\": [], \"y\": {}}, \"t\": \"<é \\\"\\n\\u0001😀>\", \"n\": null}"
        );
        assert_eq!(
            made(json!({"a": [1, {"b": "é"}], "c": [], "d": [[]]}), "(indent=2)").unwrap(),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"é\"\n    }\n  ],\n  \"c\": [],\n  \"d\": [\n    []\n  ]\n}"
        );
    }

    #[test]
    fn json_has_the_options_of_python() {
        let value = json!({"b": [1, true], "a": "é😀"});
        assert_eq!(made(value.clone(), "(separators=(',', ':'))").unwrap(), "{\"b\":[1,true],\"a\":\"é😀\"}");
        assert_eq!(
            made(value, "(true, '\t', sort_keys=true)").unwrap(),
            "{\n\t\"a\": \"\\u00e9\\ud83d\\ude00\",\n\t\"b\": [\n\t\t1,\n\t\ttrue\n\t]\n}"
        );
        assert_eq!(made(json!(0), "").unwrap() + &made(json!(null), " | length").unwrap(), "04");
        assert!(made(json!(0), "(indnt=2)").unwrap_err().to_string().contains("indnt"));
        assert!(made(json!(0), " ~ (nothing | tojson)").is_err(), "what is not defined has no JSON");
    }

    #[test]
    fn integers_of_any_size_are_whole() {
        let jinja = |value: &str| {
            let mut jinja = Environment::new();
            jinja.add_filter("tojson", super::tojson);
            jinja.render_str(&format!("{{{{ {value} | tojson }}}}"), ()).unwrap()
        };
        assert_eq!(jinja("123456789012345678901"), "123456789012345678901");
        assert_eq!(jinja("[18446744073709551615]"), "[18446744073709551615]");
    }
}
