//! The methods of Python's values that templates call.

use super::{
    arguments::{named, or, repeated},
    expression::{METHOD, is_word},
};
use minijinja::{
    Error, ErrorKind, State, Value as Jinja,
    value::{Object, ObjectRepr, Tuple, ValueKind},
};
use minijinja_contrib::pycompat;
use std::{fmt, sync::Arc};

/// A method of an object that is not called yet.
#[derive(Debug)]
struct Method {
    of: Jinja,
    name: Jinja,
}

impl Object for Method {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, given: &[Jinja]) -> Result<Jinja, Error> {
        self.of.call_method(state, self.name.as_str().unwrap_or_default(), given)
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<built-in method {} of dict object>", self.name)
    }
}

/// Calls a method of Python's texts, lists and objects.
pub(super) fn call(state: &mut State, value: &Jinja, method: &str, given: &[Jinja]) -> Result<Jinja, Error> {
    if let (METHOD, [name]) = (method, given) {
        return match value.kind() {
            ValueKind::Map => Ok(Jinja::from_object(Method { of: value.clone(), name: name.clone() })),
            _ => value.get_attr(name.as_str().unwrap_or_default()),
        };
    }
    let called = match value.kind() {
        ValueKind::String => of_text(value.as_str().unwrap_or_default(), method, given)?,
        ValueKind::Seq | ValueKind::Iterable => of_list(value, method, given)?,
        ValueKind::Map if method == "copy" => named(given, []).map(|[]| Some(value.clone()))?,
        _ => None,
    };
    called.map_or_else(|| pycompat::unknown_method_callback(state, value, method, given), Ok)
}

fn wrong(problem: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, problem)
}

/// An argument that must be a text.
fn word(given: &Jinja) -> Result<&str, Error> {
    given.as_str().ok_or_else(|| wrong("the method of a text takes a text"))
}

fn of_list(value: &Jinja, method: &str, given: &[Jinja]) -> Result<Option<Jinja>, Error> {
    Ok(Some(match method {
        "copy" => named(given, []).map(|[]| value.try_iter())??.collect(),
        "index" => {
            let [item] = named(given, ["value"])?;
            value.try_iter()?.position(|other| other == item).ok_or_else(|| wrong("the list has no such value"))?.into()
        }
        _ => return Ok(None),
    }))
}

fn of_text(text: &str, method: &str, given: &[Jinja]) -> Result<Option<Jinja>, Error> {
    Ok(Some(match method {
        "find" | "rfind" | "index" | "rindex" | "count" => found(text, method, given)?,
        "startswith" | "endswith" => has_end(text, method == "endswith", given)?.into(),
        "split" | "rsplit" => {
            let [between, most] = named(given, ["sep", "maxsplit"])?;
            let most = usize::try_from(or(&most, -1_i64)?).unwrap_or(usize::MAX);
            split(text, between.as_str(), most, method == "rsplit")?.into_iter().map(Jinja::from).collect()
        }
        "splitlines" => {
            let [keep] = named(given, ["keepends"])?;
            lines(text).map(|line| if keep.is_true() { line } else { line.trim_end_matches(is_line_end) }).collect()
        }
        "partition" | "rpartition" => {
            let [between] = named(given, ["sep"])?;
            parts(text, word(&between)?, method == "rpartition")?
        }
        "removeprefix" | "removesuffix" => {
            let [end] = named(given, ["end"])?;
            let end = word(&end)?;
            let rest = if method == "removeprefix" { text.strip_prefix(end) } else { text.strip_suffix(end) };
            rest.unwrap_or(text).into()
        }
        "strip" | "lstrip" | "rstrip" => {
            let [letters] = named(given, ["chars"])?;
            stripped(text, letters.as_str(), [method != "rstrip", method != "lstrip"]).into()
        }
        "ljust" | "rjust" | "center" => {
            let [width, fill] = named(given, ["width", "fillchar"])?;
            let ends = [usize::from(method != "ljust"), usize::from(method != "rjust")];
            let fill = if fill.is_undefined() { None } else { word(&fill)?.chars().next() };
            padded(text, or(&width, 0)?, fill.unwrap_or(' '), ends)?.into()
        }
        "zfill" => {
            let [width] = named(given, ["width"])?;
            let sign = text.len() - text.strip_prefix(['-', '+']).unwrap_or(text).len();
            let width = usize::try_from(width)?.saturating_sub(sign);
            format!("{}{}", &text[..sign], padded(&text[sign..], width, '0', [1, 0])?).into()
        }
        "title" => titled(text).into(),
        "istitle" => (titled(text) == text && text.chars().any(is_cased)).into(),
        "swapcase" => {
            let swapped = |letter: char| match letter.is_uppercase() {
                true => letter.to_lowercase().collect::<String>(),
                false => letter.to_uppercase().collect(),
            };
            text.chars().map(swapped).collect::<String>().into()
        }
        "casefold" => text.to_lowercase().replace('ß', "ss").into(),
        "isdecimal" => (!text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit())).into(),
        "isidentifier" => {
            (text.chars().all(is_word) && text.starts_with(|first: char| is_word(first) && !first.is_numeric())).into()
        }
        "expandtabs" => {
            let [size] = named(given, ["tabsize"])?;
            expanded(text, or(&size, 8)?)?.into()
        }
        _ => return Ok(None),
    }))
}

/// White space, as Python's texts have it.
fn is_space(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\u{1c}'..='\u{1f}')
}

/// A text without these letters, or white space, at its start and its end.
pub(super) fn stripped<'a>(text: &'a str, letters: Option<&str>, [at_start, at_end]: [bool; 2]) -> &'a str {
    let is_cut = |letter: char| letters.map_or_else(|| is_space(letter), |letters| letters.contains(letter));
    let text = if at_start { text.trim_start_matches(is_cut) } else { text };
    if at_end { text.trim_end_matches(is_cut) } else { text }
}

pub(super) fn is_line_end(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The lines of a text, each with its end.
pub(super) fn lines(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let end = text.find(is_line_end).map(|at| match text[at..].starts_with("\r\n") {
            true => at + 2,
            false => at + text[at..].chars().next().map_or(0, char::len_utf8),
        });
        let (line, rest) = text.split_at(end.unwrap_or(text.len()));
        text = rest;
        (!line.is_empty()).then_some(line)
    })
}

/// The part of a text from one place to another, in letters, and where it begins. `None` if it begins behind the text.
fn part<'a>(text: &'a str, start: &Jinja, end: &Jinja) -> Result<Option<(&'a str, usize)>, Error> {
    let length = text.chars().count();
    let place = |given: &Jinja, default: usize| {
        if given.is_none() || given.is_undefined() {
            return Ok::<usize, Error>(default);
        }
        let place = i64::try_from(given.clone())?;
        Ok(match usize::try_from(place) {
            Ok(place) => place,
            Err(_) => length.saturating_sub(usize::try_from(place.unsigned_abs()).unwrap_or(usize::MAX)),
        })
    };
    let (start, end) = (place(start, 0)?, place(end, length)?.min(length));
    if start > end {
        return Ok(None);
    }
    let at = |place: usize| text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
    Ok(Some((&text[at(start)..at(end)], start)))
}

fn found(text: &str, method: &str, given: &[Jinja]) -> Result<Jinja, Error> {
    let [what, start, end] = named(given, ["sub", "start", "end"])?;
    let what = word(&what)?;
    let part = part(text, &start, &end)?;
    if method == "count" {
        return Ok(part.map_or(0, |(part, _)| part.matches(what).count()).into());
    }
    let place = part.and_then(|(part, start)| {
        let at = if method.starts_with('r') { part.rfind(what) } else { part.find(what) };
        Some(start + part[..at?].chars().count())
    });
    match place {
        Some(place) => Ok(place.into()),
        None if method.ends_with("find") => Ok((-1).into()),
        None => Err(wrong("the text has no such part")),
    }
}

fn has_end(text: &str, is_last: bool, given: &[Jinja]) -> Result<bool, Error> {
    let [ends, start, end] = named(given, ["end", "start", "stop"])?;
    let Some((part, _)) = part(text, &start, &end)? else { return Ok(false) };
    let has = |end: &Jinja| {
        let end = word(end)?;
        Ok(if is_last { part.ends_with(end) } else { part.starts_with(end) })
    };
    if ends.kind() == ValueKind::String {
        return has(&ends);
    }
    for end in ends.try_iter()? {
        if has(&end)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Splits a text at most so many times, from its start or its end. Without a text between the parts it is white space.
fn split<'a>(text: &'a str, between: Option<&str>, most: usize, from_end: bool) -> Result<Vec<&'a str>, Error> {
    let parts = most.saturating_add(1);
    let mut made: Vec<&str> = match between {
        Some("") => return Err(wrong("a text cannot be split at nothing")),
        Some(between) if from_end => text.rsplitn(parts, between).collect(),
        Some(between) => text.splitn(parts, between).collect(),
        None => {
            let (mut made, mut rest) = (Vec::new(), text);
            loop {
                rest = if from_end { rest.trim_end_matches(is_space) } else { rest.trim_start_matches(is_space) };
                let at =
                    if from_end { rest.rfind(is_space) } else { rest.find(is_space) }.filter(|_| made.len() < most);
                let Some(at) = at else { break };
                let space = rest[at..].chars().next().map_or(0, char::len_utf8);
                let (part, others) =
                    if from_end { (&rest[at + space..], &rest[..at]) } else { (&rest[..at], &rest[at..]) };
                made.push(part);
                rest = others;
            }
            made.extend(Some(rest).filter(|rest| !rest.is_empty()));
            made
        }
    };
    if from_end {
        made.reverse();
    }
    Ok(made)
}

fn parts(text: &str, between: &str, from_end: bool) -> Result<Jinja, Error> {
    if between.is_empty() {
        return Err(wrong("a text cannot be split at nothing"));
    }
    let found = if from_end { text.rsplit_once(between) } else { text.split_once(between) };
    let parts = match found {
        Some((before, behind)) => [before, between, behind],
        None if from_end => ["", "", text],
        None => [text, "", ""],
    };
    Ok(Tuple::from(parts.map(Jinja::from).to_vec()).into())
}

/// Fills a text up to a width, at the ends that are 1.
pub(super) fn padded(text: &str, width: usize, fill: char, ends: [usize; 2]) -> Result<String, Error> {
    let missing = width.saturating_sub(text.chars().count());
    // In the middle, Python puts the odd letter before a text of an even width, and behind others.
    let before = if ends == [1, 1] { missing / 2 + (missing & width & 1) } else { missing * ends[0] };
    let fill = |count: usize| repeated(fill, count);
    Ok(format!("{}{text}{}", fill(before)?, fill(missing - before)?))
}

fn is_cased(letter: char) -> bool {
    letter.is_lowercase() || letter.is_uppercase()
}

/// Each word with a large first letter, and small others.
fn titled(text: &str) -> String {
    let (mut made, mut in_word) = (String::new(), false);
    for letter in text.chars() {
        let mut large = letter.to_uppercase();
        match in_word {
            true => made.extend(letter.to_lowercase()),
            false => {
                made.extend(large.next());
                made.extend(large.flat_map(char::to_lowercase));
            }
        }
        in_word = is_cased(letter);
    }
    made
}

fn expanded(text: &str, size: usize) -> Result<String, Error> {
    let (mut made, mut column) = (String::new(), 0);
    repeated(' ', size.saturating_mul(text.matches('\t').count()))?; // the most that they become
    for letter in text.chars() {
        match letter {
            '\t' => {
                let count = if size == 0 { 0 } else { size - column % size };
                made.extend(std::iter::repeat_n(' ', count));
                column += count;
            }
            _ => {
                made.push(letter);
                column = if matches!(letter, '\n' | '\r') { 0 } else { column + 1 };
            }
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use crate::text::ChatTemplate;
    use serde_json::json;

    fn text(expression: &str) -> Result<String, String> {
        let chat = json!({
            "messages": [{"role": "user", "content": "a"}], "l": [1, 2, 3], "d": {"items": 1, "b": 2}, "t": "Hello World foo",
        });
        let chat = ChatTemplate::new(&format!("{{{{ {expression} }}}}")).unwrap().render(&chat);
        chat.map(|chat| chat.text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_a_template_asks_for_is_bounded() {
        let width = "4611686018427387904";
        for asks in [
            "'a'.ljust(N)",
            "'a'.zfill(N)",
            "'a' | center(N)",
            "'a\tb'.expandtabs(N)",
            "'a' | indent(N)",
            "l | tojson(indent=N)",
        ] {
            let error = text(&asks.replace('N', width)).unwrap_err();
            assert!(error.contains("too large"), "{asks}: {error}");
        }
    }

    #[test]
    fn a_namespace_has_what_is_set_in_it_before_any_method() {
        let template = "{% set ns = namespace(items=1) %}{% set ns.items = ns.items + 1 %}{{ ns.items }}";
        let chat = ChatTemplate::new(template).unwrap().render(&json!([{"role": "user", "content": ""}])).unwrap();
        assert_eq!(chat.text, "2");
    }

    #[test]
    fn methods_are_those_of_python() {
        for (expression, right) in [
            ("t.split()", "['Hello', 'World', 'foo']"),
            ("d.items.b is defined", "False"),
            ("d.items is defined and d.get is callable and d.b.items is not defined", "True"),
            ("d['items']", "1"),
            ("(d.items)() | list", "[('items', 1), ('b', 2)]"),
            ("' a  b '.split(none, 1)", "['a', 'b ']"),
            ("t.split('o', 1)", "['Hell', ' World foo']"),
            ("t.split(sep=' ', maxsplit=1)", "['Hello', 'World foo']"),
            ("''.split(' ')", "['']"),
            ("''.split()", "[]"),
            ("t.rsplit(' ', 1)", "['Hello World', 'foo']"),
            ("' a  b '.rsplit(none, 1)", "[' a', 'b']"),
            ("t.rsplit()", "['Hello', 'World', 'foo']"),
            ("'a\\nb\\r\\n\\rc'.splitlines()", "['a', 'b', '', 'c']"),
            ("'a\\nb\\n'.splitlines(true)", "['a\\n', 'b\\n']"),
            ("t.index('W')", "6"),
            ("t.rindex('o')", "14"),
            ("t.find('o', 5)", "7"),
            ("t.find('o', -3, -1)", "13"),
            ("t.rfind('zz')", "-1"),
            ("'éaé'.find('é', 1)", "2"),
            ("t.count('o', 5)", "3"),
            ("t.partition(' ')", "('Hello', ' ', 'World foo')"),
            ("t.rpartition(' ')", "('Hello World', ' ', 'foo')"),
            ("t.partition('zz')", "('Hello World foo', '', '')"),
            ("t.rpartition('zz')", "('', '', 'Hello World foo')"),
            ("t.removeprefix('Hello ')", "World foo"),
            ("t.removesuffix('foo')", "Hello World "),
            ("t.startswith('W', 6)", "True"),
            ("t.startswith(('a', 'H'))", "True"),
            ("t.endswith(('a', 'b'))", "False"),
            ("'-5'.zfill(4)", "-005"),
            ("'é'.zfill(3)", "00é"),
            ("'ab'.ljust(4) ~ '|'", "ab  |"),
            ("'ab'.rjust(4, '*')", "**ab"),
            ("'ab'.center(5, '*')", "**ab*"),
            ("'abc'.center(6, '*')", "*abc**"),
            ("'xxaxx'.strip('x')", "a"),
            ("'\\x1c a\\n'.strip()", "a"),
            ("t.swapcase()", "hELLO wORLD FOO"),
            ("'Straße'.casefold()", "strasse"),
            ("\"they're bill's\".title()", "They'Re Bill'S"),
            ("'Ab Cd'.istitle()", "True"),
            ("'12'.isdecimal()", "True"),
            ("'½'.isdecimal()", "False"),
            ("'a_1'.isidentifier()", "True"),
            ("'a\\tb'.expandtabs(4)", "a   b"),
            ("l.index(2)", "1"),
            ("l.copy()", "[1, 2, 3]"),
            ("d.copy().b", "2"),
            ("d.items() | list", "[('items', 1), ('b', 2)]"),
        ] {
            assert_eq!(text(expression).as_deref(), Ok(right), "{expression}");
        }
        for expression in
            ["t.index('zz')", "l.index(9)", "t.split('')", "t.partition('')", "t.find(1)", "t.nope()", "l.append(4)"]
        {
            assert!(text(expression).is_err(), "{expression}");
        }
    }
}
