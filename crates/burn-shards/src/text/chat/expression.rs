//! The tokens of tags and expressions, and expressions of Jinja2 written for minijinja.

use std::collections::{BTreeMap, HashSet};

/// A filter in place of the operator `%` of texts, which minijinja does not have.
pub(super) const PERCENT: &str = "__percent__";

/// A filter around what a loop goes over, since Python refuses none there.
pub(super) const EACH: &str = "__each__";

/// A method that gives another one without calling it.
pub(super) const METHOD: &str = "__method__";

/// The methods of Python's objects. In Jinja2 `object.items` is one of them, also if the object has such a key.
const METHODS: [&str; 11] =
    ["clear", "copy", "fromkeys", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"];

/// Words that are no names of variables.
pub(super) const WORDS: [&str; 41] = [
    "None",
    "True",
    "False",
    "and",
    "autoescape",
    "break",
    "call",
    "caller",
    "continue",
    "do",
    "elif",
    "else",
    "endautoescape",
    "endcall",
    "endfilter",
    "endfor",
    "endgeneration",
    "endif",
    "endmacro",
    "endset",
    "endwith",
    "false",
    "filter",
    "for",
    "generation",
    "if",
    "in",
    "is",
    "kwargs",
    "loop",
    "macro",
    "none",
    "not",
    "or",
    "recursive",
    "self",
    "set",
    "super",
    "true",
    "varargs",
    "with",
];
/// Operators that bind more tightly than `~`.
const TIGHT: [&str; 5] = ["*", "/", "//", "%", "**"];

/// The token or the white space with which code begins.
pub(super) fn token(code: &str) -> &str {
    let mut letters = code.char_indices();
    let Some((_, first)) = letters.next() else { return code };
    let upto = |is: fn(char) -> bool| code.find(|letter| !is(letter)).unwrap_or(code.len());
    let end = match first {
        '"' | '\'' => {
            let mut escaped = false;
            let end = letters.find(|(_, letter)| {
                let ends = !escaped && *letter == first;
                escaped = !escaped && *letter == '\\';
                ends
            });
            end.map_or(code.len(), |(at, _)| at + 1)
        }
        _ if first.is_whitespace() => upto(char::is_whitespace),
        _ if is_word(first) => {
            let end = upto(is_word);
            let part = |end: usize| {
                let number = code[end..].strip_prefix('.').filter(|_| first.is_ascii_digit())?;
                let length = number.find(|letter| !is_word(letter)).unwrap_or(number.len());
                (length > 0 && number.starts_with(|letter: char| letter.is_ascii_digit())).then_some(end + 1 + length)
            };
            let end = part(end).unwrap_or(end);
            // The sign of an exponent, as in `1e-5`.
            let exponent = first.is_ascii_digit() && !code.starts_with("0x") && code[..end].ends_with(['e', 'E']);
            let power = code[end..].strip_prefix(['-', '+']).filter(|_| exponent);
            let power = power.map(|power| power.find(|letter| !is_word(letter)).unwrap_or(power.len()));
            end + power.map_or(0, |length| length + 1)
        }
        _ if ["//", "**", "==", "!=", ">=", "<="].iter().any(|two| code.starts_with(two)) => 2,
        _ => first.len_utf8(),
    };
    &code[..end]
}

pub(super) fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

pub(super) fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| is_word(first) && !first.is_ascii_digit())
}

/// The tokens of a tag or an expression, without white space.
pub(super) fn tokens(mut code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    while !code.is_empty() {
        let next = token(code);
        if !next.starts_with(char::is_whitespace) {
            tokens.push(next);
        }
        code = &code[next.len()..];
    }
    tokens
}

/// Makes texts of what `~` joins, formats by `%`, and finds methods before keys, as Python does. `spaces` are the names of
/// namespaces, which have no such methods.
pub(super) fn expression(body: &str, spaces: &HashSet<&str>) -> String {
    let tokens = tokens(body);
    let methods = methods(&tokens, spaces);
    let is_alike = !tokens.iter().any(|token| matches!(*token, "~" | "%" | "safe")) && tokens.first() != Some(&"for");
    if is_alike && methods.is_empty() {
        return body.into();
    }
    let ends = ends(&tokens);
    // What is written in place of a token, and what behind it.
    let mut written: Vec<String> = tokens.iter().map(|token| token.to_string()).collect();
    let is = |at: Option<usize>, of: &[&str]| at.and_then(|at| tokens.get(at)).is_some_and(|token| of.contains(token));
    let (mut signed, mut operands) = (false, BTreeMap::new());
    for at in 0..tokens.len() {
        let before = at.checked_sub(1);
        if std::mem::take(&mut signed) || !begins(before.map(|before| tokens[before])) {
            continue;
        }
        signed = matches!(tokens[at], "-" | "+");
        let Some(end) = operand(&tokens, &ends, at) else { continue };
        operands.insert(at, end);
        let is_text = tokens[at].starts_with(['\'', '"']) && end == at + 1;
        let is_tight = is(before, &TIGHT) || is(Some(end), &TIGHT);
        if (is(before, &["~"]) || is(Some(end), &["~"])) && !is_tight && !is_text {
            written[end - 1].push_str("|string");
        }
        if is_text
            && is(Some(end), &["%"])
            && !is(before, &TIGHT)
            && let Some(last) = operand(&tokens, &ends, end + 1)
        {
            written[end] = format!("|{PERCENT}(");
            written[last - 1].push(')');
        }
    }
    for end in escaped(&tokens, &operands) {
        written[end - 1].push_str("|e");
    }
    if let (Some(&"for"), Some(within)) = (tokens.first(), tokens.iter().position(|token| *token == "in")) {
        let end = operand(&tokens, &ends, within + 1)
            .filter(|end| *end == tokens.len() || is(Some(*end), &["if", "recursive"]));
        if let Some(end) = end {
            written[end - 1].push_str(&format!("|{EACH}"));
        }
    }
    for at in methods {
        written[at].insert_str(0, &format!("{METHOD}('"));
        written[at].insert_str(METHOD.len() + 2 + tokens[at].len(), "')");
    }
    // The white space stays, since a text may have several lines.
    let (mut made, mut rest) = (String::new(), body);
    for (token, written) in tokens.iter().zip(written) {
        let space = rest.len() - rest.trim_start().len();
        made.extend([&rest[..space], &written]);
        rest = &rest[space + token.len()..];
    }
    made + rest
}

/// The places of methods that are named and not called.
fn methods(tokens: &[&str], spaces: &HashSet<&str>) -> Vec<usize> {
    // What a tag sets is no method.
    let begin = if tokens.first() == Some(&"set") { tokens.iter().position(|token| *token == "=") } else { None };
    let is_named = |at: &usize| {
        tokens[at - 1] == "."
            && METHODS.contains(&tokens[*at])
            && tokens.get(at + 1) != Some(&"(")
            && !spaces.contains(tokens[at - 2])
    };
    (begin.unwrap_or_default().max(2)..tokens.len()).filter(is_named).collect()
}

/// The ends of the operands that are added to a safe one, and are not safe: Python escapes what is added to such a text.
fn escaped(tokens: &[&str], operands: &BTreeMap<usize, usize>) -> Vec<usize> {
    let is_safe = |end: usize| end > 1 && tokens[end - 2..end] == ["|", "safe"];
    let mut ends = Vec::new();
    for first in operands.keys().filter(|at| **at == 0 || tokens[**at - 1] != "+") {
        let next = |end: &usize| operands.get(&(end + 1)).filter(|_| tokens.get(*end) == Some(&"+")).copied();
        let sum: Vec<usize> = std::iter::successors(operands.get(first).copied(), next).collect();
        if sum.iter().any(|end| is_safe(*end)) {
            ends.extend(sum.into_iter().filter(|end| !is_safe(*end)));
        }
    }
    ends
}

/// Whether an operand may begin behind this token.
fn begins(before: Option<&str>) -> bool {
    let Some(token) = before else { return true };
    let ends = is_name(token) && (!WORDS.contains(&token) || ["true", "false", "none", "loop"].contains(&token));
    let is_value = token.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '\'' | '"'));
    !ends && !is_value && !matches!(token, ")" | "]" | "}" | "." | "|" | "is")
}

/// The end of the operand that begins here, with its attributes, calls and filters. `None` if a test follows.
fn operand(tokens: &[&str], ends: &[Option<usize>], begin: usize) -> Option<usize> {
    let is = |at: usize, of: &[&str]| tokens.get(at).is_some_and(|token| of.contains(token));
    let mut at = begin;
    while is(at, &["-", "+"]) {
        at += 1;
    }
    at = if is(at, &["(", "[", "{"]) { ends[at]? } else { at + 1 };
    while tokens[..tokens.len().min(at)].last()?.starts_with(['\'', '"'])
        && tokens.get(at).is_some_and(|next| next.starts_with(['\'', '"']))
    {
        at += 1;
    }
    loop {
        if is(at, &["(", "["]) {
            at = ends[at]?;
        } else if is(at, &[".", "|"]) {
            at += 2;
        } else {
            break;
        }
    }
    (at <= tokens.len() && !is(at, &["is"])).then_some(at)
}

/// The place behind the bracket that closes each one that opens.
fn ends(tokens: &[&str]) -> Vec<Option<usize>> {
    let (mut ends, mut open) = (vec![None; tokens.len()], Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" => open.push(at),
            ")" | "]" | "}" => {
                if let Some(begin) = open.pop() {
                    ends[begin] = Some(at + 1);
                }
            }
            _ => {}
        }
    }
    ends
}
