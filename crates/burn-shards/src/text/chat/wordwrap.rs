//! The filter `wordwrap`, which breaks lines where Python's `textwrap` does.

use super::{
    arguments::{named, or},
    methods::{is_line_end, lines},
    python::text,
};
use minijinja::{
    Error, ErrorKind, Value as Jinja,
    value::{Rest, ValueOrKwargs},
};

pub(super) fn wordwrap(value: &Jinja, given: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let names = ["width", "break_long_words", "wrapstring", "break_on_hyphens"];
    let [width, long, end, hyphens] = named(&given.into_values(), names)?;
    let width = or(&width, 79_usize)?;
    if width == 0 {
        return Err(Error::new(ErrorKind::InvalidOperation, "a line of `wordwrap` has at least 1 letter"));
    }
    let [long, hyphens] = [long, hyphens].map(|given| given.is_undefined() || given.is_true());
    let end = end.as_str().unwrap_or("\n");
    let text = text(value);
    let wrapped = lines(&text).map(|line| {
        let line: Vec<char> = line.trim_end_matches(is_line_end).chars().collect();
        wrap(&line, width, long, hyphens).join(end)
    });
    Ok(wrapped.collect::<Vec<_>>().join(end))
}

/// Breaks a line into lines of at most `width` letters.
fn wrap(line: &[char], width: usize, long: bool, hyphens: bool) -> Vec<String> {
    let mut made: Vec<String> = Vec::new();
    let mut rest: Vec<&[char]> = pieces(line, hyphens);
    rest.reverse();
    while let Some(first) = rest.last() {
        if is_blank(first) && !made.is_empty() {
            rest.pop();
        }
        let (mut taken, mut length): (Vec<&[char]>, usize) = (Vec::new(), 0);
        while let Some(piece) = rest.last().copied().filter(|piece| length + piece.len() <= width) {
            length += piece.len();
            taken.push(piece);
            rest.pop();
        }
        if let Some(piece) = rest.last_mut().filter(|piece| piece.len() > width) {
            if long {
                let mut end = width - length;
                let hyphen = piece[..end].iter().rposition(|letter| *letter == '-').filter(|_| hyphens);
                if let Some(hyphen) = hyphen.filter(|hyphen| piece[..*hyphen].iter().any(|letter| *letter != '-')) {
                    end = hyphen + 1;
                }
                taken.push(&piece[..end]);
                *piece = &piece[end..];
            } else if taken.is_empty() {
                taken.extend(rest.pop());
            }
        }
        if taken.last().is_some_and(|piece| is_blank(piece)) {
            taken.pop();
        }
        if !taken.is_empty() {
            made.push(taken.concat().into_iter().collect());
        }
    }
    made
}

fn is_space(letter: char) -> bool {
    matches!(letter, '\t'..='\r' | ' ')
}

fn is_blank(piece: &[char]) -> bool {
    piece.iter().all(|letter| is_space(*letter))
}

/// A line in pieces between which it may break: white space, and words or their parts behind hyphens.
fn pieces(line: &[char], hyphens: bool) -> Vec<&[char]> {
    let is = |at: usize, of: fn(char) -> bool| line.get(at).is_some_and(|letter| of(*letter));
    let is_hyphen = |at: usize| line.get(at) == Some(&'-');
    let (mut made, mut start) = (Vec::new(), 0);
    for end in 1..=line.len() {
        let is_edge = end == line.len() || is(end, is_space) != is(end - 1, is_space);
        // Behind a hyphen in a word, and around a dash of several.
        let before = end.wrapping_sub(3);
        let is_word = is(before, is_letter) && (is(end.wrapping_sub(2), is_letter))
            || is(end.wrapping_sub(4), is_letter) && is_hyphen(before) && is(end.wrapping_sub(2), is_part);
        let is_next = is(end, is_letter) && (is(end + 1, is_letter) || is_hyphen(end + 1) && is(end + 2, is_letter));
        let dashes = line[end..].iter().take_while(|letter| **letter == '-').count();
        let begins_dash =
            is(end - 1, is_part) && dashes > 1 && is(end + dashes, |letter| letter.is_alphanumeric() || letter == '_');
        let is_dash = line[start..end].iter().all(|letter| *letter == '-')
            && end - start > 1
            && start > 0
            && is(start - 1, is_part);
        let ends_dash = is_dash && is(end, |letter| letter.is_alphanumeric() || letter == '_');
        if is_edge || hyphens && (is_hyphen(end - 1) && is_word && is_next || begins_dash || ends_dash) {
            made.push(&line[start..end]);
            start = end;
        }
    }
    made
}

fn is_letter(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_'
}

fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || "_!\"'&.,?".contains(letter)
}

#[cfg(test)]
mod tests {
    use crate::text::ChatTemplate;
    use serde_json::json;

    /// The right texts are those of Jinja2.
    #[test]
    fn lines_break_where_python_breaks_them() {
        for (expression, right) in [
            ("'hello wide world' | wordwrap(7)", "hello\nwide\nworld"),
            ("'aaaaaaaaaaaa bb' | wordwrap(5)", "aaaaa\naaaaa\naa bb"),
            ("'aaaaaaaaaaaa bb' | wordwrap(5, false)", "aaaaaaaaaaaa\nbb"),
            ("'a-b-c-d-e-f' | wordwrap(4)", "a-b-\nc-d-\ne-f"),
            ("'well-known long-standing' | wordwrap(11)", "well-known\nlong-\nstanding"),
            ("'a-b c-d eeee' | wordwrap(3, break_on_hyphens=false)", "a-b\nc-d\neee\ne"),
            ("'one--two three' | wordwrap(6)", "one--\ntwo\nthree"),
            ("'a b' | wordwrap(1, wrapstring=' / ')", "a / b"),
            ("'  It\\'s a \"té\"\\n x ' | wordwrap(5, false)", "It's\na\n\"té\"\n x"),
            ("'a\\r\\n\\nb' | wordwrap(2)", "a\n\nb"),
            ("'' | wordwrap", ""),
        ] {
            let template = ChatTemplate::new(&format!("{{{{ {expression} }}}}")).unwrap();
            assert_eq!(template.render(&json!([{"role": "user", "content": ""}])).unwrap().text, right, "{expression}");
        }
    }
}
