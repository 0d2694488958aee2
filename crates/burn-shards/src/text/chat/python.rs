//! Values of templates as Python writes them.

use minijinja::{Value as Jinja, value::ValueKind};

/// What `str` of Python makes of a value.
pub(super) fn text(value: &Jinja) -> String {
    if is_own(value) { repr(value) } else { value.to_string() }
}

/// Whether Python writes a value in another way than minijinja.
pub(super) fn is_own(value: &Jinja) -> bool {
    match value.kind() {
        ValueKind::Number => !value.is_integer(),
        ValueKind::Seq | ValueKind::Map => true,
        ValueKind::Iterable => value.len().is_some(),
        _ => false,
    }
}

/// What `repr` of Python makes of a value.
pub(super) fn repr(value: &Jinja) -> String {
    let items = |ends: [&str; 2]| {
        let items: Vec<String> = value.try_iter().into_iter().flatten().map(|item| repr(&item)).collect();
        let comma = if ends[1] == ")" && items.len() == 1 { "," } else { "" };
        format!("{}{}{comma}{}", ends[0], items.join(", "), ends[1])
    };
    match value.kind() {
        ValueKind::Undefined => "Undefined".into(),
        ValueKind::String => quoted(value.as_str().unwrap_or_default()),
        ValueKind::Number if !value.is_integer() => {
            f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float)
        }
        ValueKind::Seq if value.is_tuple() => items(["(", ")"]),
        ValueKind::Seq => items(["[", "]"]),
        ValueKind::Iterable if value.len().is_some() => items(["[", "]"]),
        ValueKind::Map => {
            let pair = |key: Jinja| format!("{}: {}", repr(&key), repr(&value.get_item(&key).unwrap_or_default()));
            let pairs: Vec<String> = value.try_iter().into_iter().flatten().map(pair).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        _ => value.to_string(),
    }
}

/// A float with the fewest digits that tell it, and an exponent where Python writes one.
pub(super) fn float(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "nan".into() } else { value.to_string() };
    }
    let told = format!("{value:e}");
    let (digits, exponent) = told.split_once('e').unwrap_or((&told, "0"));
    match exponent.parse::<i32>() {
        Ok(power) if !(-4..=15).contains(&power) => {
            format!("{digits}e{}{:02}", if power < 0 { '-' } else { '+' }, power.unsigned_abs())
        }
        _ => format!("{value:?}"),
    }
}

/// A text in the quotes of Python, with its escapes.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut made = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\n' => made.push_str("\\n"),
            '\r' => made.push_str("\\r"),
            '\t' => made.push_str("\\t"),
            '\\' => made.push_str("\\\\"),
            _ if letter == quote => made.extend(['\\', letter]),
            _ if is_shown(letter) => made.push(letter),
            _ => made.push_str(&match letter as u32 {
                code @ ..=0xFF => format!("\\x{code:02x}"),
                code @ ..=0xFFFF => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
        }
    }
    made.push(quote);
    made
}

/// Whether Python takes a letter for one that can be printed: all but control letters, white space, letters of formats and private ones.
fn is_shown(letter: char) -> bool {
    let is_hidden = letter.is_control()
        || letter.is_whitespace()
        || matches!(
            letter,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{180e}'
                | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e000}'..='\u{f8ff}'
                | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..
        ) && !matches!(letter, '\u{e0100}'..='\u{e01ef}');
    letter == ' ' || !is_hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_as_python_writes_them() {
        for (value, right) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (123456789.125, "123456789.125"),
            (1e15, "1000000000000000.0"),
            (9007199254740993.0, "9007199254740992.0"),
            (1e16, "1e+16"),
            (1.5e22, "1.5e+22"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(float(value), right);
        }
    }

    #[test]
    fn texts_in_lists_have_the_quotes_and_escapes_of_python() {
        for (text, right) in [
            ("a", "'a'"),
            ("it's", "\"it's\""),
            ("'\"", "'\\'\"'"),
            ("\\\n\r\t", "'\\\\\\n\\r\\t'"),
            ("\0\x7f\u{a0}\u{ad}", "'\\x00\\x7f\\xa0\\xad'"),
            ("é日\u{301}😀", "'é日\u{301}😀'"),
            ("\u{200b}\u{2028}\u{e0001}", "'\\u200b\\u2028\\U000e0001'"),
        ] {
            assert_eq!(quoted(text), right);
        }
    }
}
