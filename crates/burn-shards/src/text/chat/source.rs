//! Templates of Jinja2, written so that minijinja takes them alike.

use super::{
    blocks::{BEGINS, ENDS, SAID},
    expression::{WORDS, expression, is_name, token, tokens},
};
use std::collections::HashSet;

/// A part of a template.
enum TemplatePart<'a> {
    /// Text and comments.
    Plain(&'a str),
    /// A raw block: the begin of its first tag, and what is behind that.
    Raw { open: &'a str, inner: &'a str },
    /// `{{ .. }}` or `{% .. %}`, with the signs for white space in its ends.
    Code { open: &'a str, body: &'a str, close: &'a str },
}

/// A template of Jinja2, in parts.
pub(super) struct TemplateSource<'a> {
    pieces: Vec<TemplatePart<'a>>,
}

impl<'a> TemplateSource<'a> {
    /// Reads a template whose lines end with `\n`, as those of Jinja2 do.
    pub(super) fn new(template: &'a str) -> Self {
        let (mut pieces, mut rest) = (Vec::new(), template);
        let mut plain = 0;
        while let Some(found) = rest[plain..].find("{").map(|at| at + plain) {
            let code = &rest[found..];
            let (piece, length) = match code.as_bytes().get(1) {
                Some(b'#') => {
                    plain = found + code.find("#}").map_or(code.len(), |end| end + 2);
                    continue;
                }
                Some(b'%' | b'{') => match raw(code).or_else(|| coded(code)) {
                    Some(piece) => piece,
                    None => break,
                },
                _ => {
                    plain = found + 1;
                    continue;
                }
            };
            pieces.extend([TemplatePart::Plain(&rest[..found]), piece]);
            (rest, plain) = (&code[length..], 0);
        }
        pieces.push(TemplatePart::Plain(rest));
        Self { pieces }
    }

    /// The tokens of each tag and expression.
    fn code(&self) -> impl Iterator<Item = Vec<&'a str>> {
        self.pieces.iter().filter_map(|piece| match piece {
            TemplatePart::Code { body, .. } => Some(tokens(body)),
            _ => None,
        })
    }

    /// The names of namespaces.
    fn spaces(&self) -> HashSet<&'a str> {
        let name = |tokens: Vec<&'a str>| match tokens[..] {
            ["set", name, "=", "namespace", ..] => Some(name),
            _ => None,
        };
        self.code().filter_map(name).collect()
    }

    /// Whether it has blocks `generation`.
    pub(super) fn has_blocks(&self) -> bool {
        self.code().any(|tokens| tokens == ["generation"])
    }

    /// The names of which it asks whether they are none.
    pub(super) fn asks_for_none(&self) -> HashSet<String> {
        let mut asked = HashSet::new();
        for tokens in self.code() {
            let tokens: Vec<_> = tokens.into_iter().filter(|token| !matches!(*token, "]" | ")" | "not")).collect();
            for three in tokens
                .windows(3)
                .filter(|three| matches!(three[1], "is" | "==" | "!=") && matches!(three[2], "none" | "None"))
            {
                asked.insert(three[0].trim_matches(['\'', '"']).into());
            }
        }
        asked
    }

    /// Writes it for minijinja. With `places`, each iteration over a message tells where it begins and ends.
    pub(super) fn written(&self, places: bool) -> String {
        let mut made = String::new();
        // The loops and conditions around a tag: the variable of each loop over single values.
        let mut around: Vec<Option<&str>> = Vec::new();
        let spaces = self.spaces();
        for (at, piece) in self.pieces.iter().enumerate() {
            let (open, body, close) = match *piece {
                TemplatePart::Code { open, body, close } => (open, body, close),
                // Jinja2 keeps the end of a line behind this tag.
                TemplatePart::Raw { open, inner } => {
                    made.extend([open, if inner.starts_with("%}") { "+" } else { "" }, inner]);
                    continue;
                }
                TemplatePart::Plain(text) => {
                    made.push_str(text);
                    continue;
                }
            };
            let inner = expression(body, &spaces);
            let tag = tokens(body);
            if open.starts_with("{{") {
                made.extend([open, &inner, close]);
                continue;
            }
            let end = |name: Option<&str>| match (places, name) {
                (true, Some(name)) => format!("{open} filter {ENDS}({name}) %}}{{% endfilter %}}{{%"),
                _ => open.to_string(),
            };
            let (before, after) = match tag.first().copied().unwrap_or_default() {
                "generation" => {
                    // A block has a scope of its own.
                    made.push_str(&format!("{open} with %}}{{% filter {SAID} {close}"));
                    continue;
                }
                "endgeneration" => {
                    made.push_str(&format!("{open} endfilter %}}{{% endwith {close}"));
                    continue;
                }
                "macro" | "call" => (open.to_string(), self.captured(at)),
                "for" => {
                    let name = (tag.get(2) == Some(&"in")).then(|| tag[1]);
                    around.push(name);
                    let begin = name.filter(|_| places);
                    let begin = begin.map(|name| format!("%}}{{% filter {BEGINS}({name}) %}}{{% endfilter "));
                    (open.to_string(), begin.unwrap_or_default())
                }
                "if" => {
                    around.push(None);
                    (open.to_string(), String::new())
                }
                "else" => (end(around.last_mut().and_then(Option::take)), String::new()),
                "endfor" | "endif" => (end(around.pop().flatten()), String::new()),
                _ => (open.to_string(), String::new()),
            };
            made.extend([before.as_str(), &inner, &after, close]);
        }
        made
    }

    /// The end of a tag that begins a macro, and a look at the variables of its body: minijinja's macros do not see all that
    /// they only set or cut.
    fn captured(&self, begin: usize) -> String {
        let (mut names, mut depth) = (Vec::new(), 0_usize);
        for piece in &self.pieces[begin..] {
            let TemplatePart::Code { body, .. } = piece else { continue };
            let tag = tokens(body);
            match tag.first().copied() {
                Some("macro" | "call") => depth += 1,
                Some("endmacro" | "endcall") => depth -= 1,
                _ => {}
            }
            for (at, token) in tag.iter().enumerate() {
                let part = at > 0 && matches!(tag[at - 1], "." | "|" | "is");
                if is_name(token) && !part && !WORDS.contains(token) && !names.contains(token) {
                    names.push(token);
                }
            }
            if depth == 0 {
                break;
            }
        }
        if names.is_empty() {
            String::new()
        } else {
            format!("%}}{{% if false %}}{{{{ [{}] }}}}{{% endif ", names.join(", "))
        }
    }
}

/// The raw block with which code begins, and its length.
fn raw(code: &str) -> Option<(TemplatePart<'_>, usize)> {
    // The length of a tag, up to its signs at the end.
    let is = |tag: &str, name| {
        let inner = tag.strip_prefix("{%")?.split_once("%}")?.0.trim_end_matches(['-', '+']);
        (inner.trim_start_matches(['-', '+']).trim() == name).then_some(inner.len() + 2)
    };
    let begin = is(code, "raw")?;
    let end = code[begin..]
        .match_indices("{%")
        .find_map(|(at, _)| is(&code[begin + at..], "endraw").map(|end| begin + at + end));
    let end = end.and_then(|end| Some(end + code[end..].find("%}")? + 2)).unwrap_or(code.len());
    Some((TemplatePart::Raw { open: &code[..begin], inner: &code[begin..end] }, end))
}

/// A tag or an expression with which code begins, and its length.
fn coded(code: &str) -> Option<(TemplatePart<'_>, usize)> {
    let end = if code.starts_with("{{") { "}}" } else { "%}" };
    let begin = if matches!(code.as_bytes().get(2), Some(b'-' | b'+')) { 3 } else { 2 };
    let (mut at, mut depth) = (begin, 0_usize);
    while at < code.len() {
        let rest = &code[at..];
        if depth == 0 && rest.starts_with(end) {
            let body = &code[begin..at];
            let sign = if body.ends_with(['-', '+']) { 1 } else { 0 };
            let (body, close) = (&body[..body.len() - sign], &code[at - sign..at + 2]);
            return Some((TemplatePart::Code { open: &code[..begin], body, close }, at + 2));
        }
        let token = token(rest);
        match token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += token.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::ChatTemplate;
    use serde_json::json;

    fn text(template: &str) -> String {
        let chat = json!({
            "messages": [{"role": "user", "content": "a"}], "l": [1, 2, 3], "t": "A b", "f": 1e-5, "n": null,
        });
        ChatTemplate::new(template).unwrap().render(&chat).unwrap().text
    }

    #[test]
    fn macros_and_blocks_see_what_is_outside() {
        for (template, right) in [
            ("{% set ns = namespace(x=0) %}{% generation %}a{% set ns.x = 1 %}{% endgeneration %}{{ ns.x }}", "a1"),
            ("{% set ns = namespace(x=0) %}{% macro f() %}{% set ns.x = 2 %}{% endmacro %}{{ f() }}{{ ns.x }}", "2"),
            ("{% set y = [1, 2] %}{% macro f() %}{{ y[1:] | length }}{% endmacro %}{{ f() }}", "1"),
            ("{% set y = 'a ' %}{% macro f() %}{% set y = y | trim %}{{ y }}|{% endmacro %}{{ f() }}{{ y }}", "a|a "),
            (
                "{% set y = 'a ' %}{% macro f() %}{% with y = y | trim %}{{ y }}|{% endwith %}{% endmacro %}{{ f() }}",
                "a|",
            ),
            (
                "{% set y = 'b' %}{% macro f() %}{% filter replace('a', y) %}aXa{% endfilter %}{% endmacro %}{{ f() }}",
                "bXb",
            ),
            (
                "{% set y = 'b' %}{% macro f() %}{{ caller() }}{% endmacro %}{% call f() %}{% set y = y ~ y %}{{ y }}{% endcall %}",
                "bb",
            ),
            ("{% macro f(y) %}{{ g(y) }}{% endmacro %}{% macro g(y) %}{{ y[:1] }}{% endmacro %}{{ f('ab') }}", "a"),
            // A block has a scope of its own.
            ("{% set y = 'a' %}{% generation %}{{ y }}{% set y = y ~ 'b' %}{{ y }}{% endgeneration %}{{ y }}", "aaba"),
            (
                "{% for i in l %}{% generation %}{{ loop.index }}{{ l[i:] }}{% endgeneration %}{% endfor %}",
                "1[2, 3]2[3]3[]",
            ),
            ("{% macro f(x) %}{% generation %}{{ x }}{% endgeneration %}{% endmacro %}[{{ f('q') }}]", "[q]"),
        ] {
            assert_eq!(text(template), right, "{template}");
        }
    }

    #[test]
    fn signs_of_code_in_texts_comments_and_raw_blocks_are_none() {
        for (template, right) in [
            ("{{ '{% generation %}' }}{% generation %}b{% endgeneration %}", "{% generation %}b"),
            ("{% raw %}{% generation %}{{ a }}{% endraw %}", "{% generation %}{{ a }}"),
            ("{%- raw -%} {% for a in b %} {%- endraw -%} c", "{% for a in b %}c"),
            ("{% raw %}\n {{ a }}\n{% endraw %}\nb", "\n {{ a }}\nb"),
            ("{# {% generation %} {{ #}b", "b"),
            ("{% if '%}' == \"%}\" %}a{% endif %}{{ \"}}\" }}", "a}}"),
            ("{{ {'a': {'b': 1}}['a']['b'] }}{{ 'it\\'s' }}", "1it's"),
            ("{{- 'a' -}}  {%- if true +%}\n b{% endif %}", "a\n b"),
            ("  {% generation %}\n a {% endgeneration %}\nb", " a b"),
            ("  {%+ generation +%}\n a {%+ endgeneration +%}\nb", "  \n a \nb"),
            ("{%generation%}a{%endgeneration%}", "a"),
        ] {
            assert_eq!(text(template), right, "{template}");
        }
        assert!(
            ChatTemplate::new("{{ 'a").is_err()
                && ChatTemplate::new("{% if").is_err()
                && ChatTemplate::new("{").is_ok()
        );
    }

    #[test]
    fn the_ends_of_lines_are_those_of_jinja() {
        assert_eq!(text("x\r\n{% if 1 %}\r\ny\r\n{% endif %}\r\nz\r\n"), "x\ny\nz");
        assert_eq!(text("x\r{% if 1 %}\ry{% endif %}\r"), "x\ny");
        assert_eq!(text("{{ 'a\r\nb' }}\n\n"), "a\nb\n");
    }

    #[test]
    fn what_is_joined_and_formatted_is_as_in_python() {
        for (expression, right) in [
            ("'a' ~ f ~ 1e16", "a1e-051e+16"),
            ("'a' ~ l ~ n ~ none", "a[1, 2, 3]NoneNone"),
            ("f ~ ''", "1e-05"),
            ("-f ~ 'x'", "-1e-05x"),
            ("2 * 3 ~ 'x'", "6x"),
            ("l[0] ~ t.upper() ~ (t | lower)", "1A Ba b"),
            ("'a' ~ ('b' if n is none else f)", "ab"),
            ("{'a': 'x' ~ f}['a']", "x1e-05"),
            ("'%s-%d' % (t, 3)", "A b-3"),
            ("'%s' % t | upper ~ '!'", "A B!"),
            ("'%05.1f%%' % 2.25", "002.2%"),
            ("('%s' % l) ~ 'x'", "[1, 2, 3]x"),
            ("7 % 4", "3"),
            ("'<' | safe + '<' + t | tojson", "<&lt;&#34;A b&#34;"),
            ("'<' + '>' | safe + t", "&lt;>A b"),
            ("'<' | safe ~ '>'", "<>"),
        ] {
            assert_eq!(text(&format!("{{{{ {expression} }}}}")), right, "{expression}");
        }
    }

    #[test]
    fn a_loop_over_none_is_refused() {
        assert_eq!(text("{% for a in nothing %}{{ a }}{% endfor %}{% for a in l if a > 1 %}{{ a }}{% endfor %}"), "23");
        assert_eq!(
            text("{% for a, b in [[1, 2]] %}{{ a }}{{ b }}{% endfor %}{% for a in l[1:] + [4] %}{{ a }}{% endfor %}"),
            "12234"
        );
        let none = ChatTemplate::new("{% for part in messages[0].content %}{% endfor %}").unwrap();
        assert!(none.render(&json!([{"role": "user", "content": null}])).is_err());
    }

    #[test]
    fn names_that_are_asked_for_none() {
        let source = TemplateSource::new(
            "{% if m.a is none %}{{ m['b'] is not none }}{% elif m.get('c') != none %}{% endif %}{{ d == 1 }}",
        );
        let mut names = Vec::from_iter(source.asks_for_none());
        names.sort();
        assert_eq!(names, ["a", "b", "c"]);
    }
}
