//! The filters, tests and functions of Jinja2 that minijinja has in another form, or not at all.

use super::{
    arguments::{named, or, repeated},
    expression::{EACH, PERCENT, is_word},
    json::tojson,
    methods::{is_line_end, lines, padded, stripped},
    python::{is_own, text},
    wordwrap::wordwrap,
};
use minijinja::{
    Environment, Error, ErrorKind, State, Value as Jinja, escape_formatter, filters,
    formatting::{FormatStyle, format},
    functions::Function,
    value::{FunctionArgs, FunctionResult, Kwargs, Rest, StringInput, ValueKind, ValueOrKwargs},
};
use minijinja_contrib::{filters as more, globals};

/// Adds what templates of `transformers` can call.
pub(super) fn add(jinja: &mut Environment<'static>) {
    jinja.set_formatter(|out, state, value| match is_own(value) {
        true => out.write_str(&text(value)).map_err(Error::from),
        false => escape_formatter(out, state, value),
    });
    jinja.remove_global("debug");
    jinja.add_function("cycler", |items: Rest<Jinja>| globals::cycler(items.0));
    jinja.add_function("joiner", globals::joiner);
    jinja.add_function("raise_exception", refuse);
    jinja.add_test("iterable", |value: &Jinja| !value.is_none() && value.try_iter().is_ok());
    jinja.add_test("sequence", is_sequence);
    jinja.add_test("callable", |value: &Jinja| matches!(value.kind(), ValueKind::Undefined | ValueKind::Plain));
    for name in ["d", "default"] {
        jinja.add_filter(name, default);
    }
    for name in ["e", "escape", "forceescape"] {
        jinja.add_filter(name, escape);
    }
    jinja.add_filter("center", center);
    jinja.add_filter("filesizeformat", more::filesizeformat);
    jinja.add_filter("float", float);
    jinja.add_filter("indent", indent);
    jinja.add_filter("int", int);
    jinja.add_filter("join", join);
    jinja.add_filter("string", |value: &Jinja| if value.is_safe() { value.clone() } else { text(value).into() });
    jinja.add_filter("striptags", more::striptags);
    jinja.add_filter("tojson", tojson);
    jinja.add_filter("urlencode", urlencode);
    jinja.add_filter("wordcount", |value: &Jinja| {
        text(value).split(|letter: char| !is_word(letter)).filter(|word| !word.is_empty()).count()
    });
    add_named(jinja, "batch", filters::batch, ["linecount", "fill_with"], false);
    add_named(jinja, "dictsort", filters::dictsort, ["case_sensitive", "by", "reverse"], true);
    add_named(jinja, "slice", filters::slice, ["slices", "fill_with"], false);
    add_named(jinja, "sort", filters::sort, ["reverse", "case_sensitive", "attribute"], true);
    add_named(jinja, "trim", trim, ["chars"], false);
    add_named(jinja, "truncate", more::truncate, ["length", "killwords", "end", "leeway"], true);
    add_named(jinja, "unique", filters::unique, ["case_sensitive", "attribute"], true);
    jinja.add_filter("wordwrap", wordwrap);
    for name in [EACH, "list"] {
        let own = if name == EACH { |_: &State, value| Ok(value) } else { filters::list };
        jinja.add_filter(name, move |state: &State, value: Jinja| match value.kind() {
            ValueKind::None => Err(Error::new(ErrorKind::InvalidOperation, "none has no items")),
            _ => own(state, value),
        });
    }
    for (name, filter) in [
        ("capitalize", filters::capitalize as fn(StringInput) -> Jinja),
        ("lower", filters::lower),
        ("upper", filters::upper),
    ] {
        jinja.add_filter(name, move |state: &State, value: &Jinja| {
            Ok::<_, Error>(filter(StringInput::new(state, &text(value).into())?))
        });
    }
    jinja.add_filter("title", |value: &Jinja| filters::title(text(value).into()));
    jinja.add_filter(PERCENT, |value: &str, with: &Jinja| match with.is_tuple() {
        true => format(FormatStyle::Printf, value, &with.try_iter()?.collect::<Vec<_>>()),
        false => format(FormatStyle::Printf, value, std::slice::from_ref(with)),
    });
}

/// The function `raise_exception` of templates.
fn refuse(problem: String) -> Result<Jinja, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, problem))
}

/// Whether a value has a length and items by their places, as texts and objects have it in Python.
fn is_sequence(value: &Jinja) -> bool {
    matches!(value.kind(), ValueKind::Undefined | ValueKind::String | ValueKind::Seq | ValueKind::Map)
        || value.kind() == ValueKind::Iterable && value.len().is_some()
}

fn default(value: &Jinja, given: Rest<ValueOrKwargs>) -> Result<Jinja, Error> {
    let [other, of_false] = named(&given.into_values(), ["default_value", "boolean"])?;
    let is_missing = value.is_undefined() || of_false.is_true() && !value.is_true();
    let other = if other.is_undefined() { "".into() } else { other };
    Ok(if is_missing { other } else { value.clone() })
}

fn escape(value: &Jinja) -> Jinja {
    if value.is_safe() {
        return value.clone();
    }
    let mut made = String::new();
    for letter in text(value).chars() {
        match letter {
            '&' => made.push_str("&amp;"),
            '<' => made.push_str("&lt;"),
            '>' => made.push_str("&gt;"),
            '"' => made.push_str("&#34;"),
            '\'' => made.push_str("&#39;"),
            _ => made.push(letter),
        }
    }
    Jinja::from_safe_string(made)
}

fn center(value: &Jinja, width: Option<usize>) -> Result<String, Error> {
    padded(&text(value), width.unwrap_or(80), ' ', [1, 1])
}

fn trim(value: &Jinja, letters: Option<&str>) -> String {
    stripped(&text(value), letters, [true, true]).into()
}

fn int(
    state: &State,
    value: &Jinja,
    default: Option<Jinja>,
    base: Option<u32>,
    options: Kwargs,
) -> Result<Jinja, Error> {
    let default = default.or_else(|| (!options.has("default")).then(|| 0.into()));
    filters::int(state, value, default, base, options)
}

fn float(state: &State, value: &Jinja, default: Option<Jinja>, options: Kwargs) -> Result<Jinja, Error> {
    let default = default.or_else(|| (!options.has("default")).then(|| 0.0.into()));
    filters::float(state, value, default, options)
}

fn indent(value: &Jinja, given: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let [width, first, blank] = named(&given.into_values(), ["width", "first", "blank"])?;
    let before = match width.as_str() {
        Some(before) => before.to_string(),
        None => repeated(' ', or(&width, 4)?)?,
    };
    let mut made = String::new();
    // Behind the last end of a line there is a line of its own.
    for (at, line) in lines(&(text(value) + "\n")).enumerate() {
        let line = line.trim_end_matches(is_line_end);
        if at > 0 {
            made.push('\n');
        }
        if at == 0 && first.is_true() || at > 0 && (blank.is_true() || !line.is_empty()) {
            made.push_str(&before);
        }
        made.push_str(line);
    }
    Ok(made)
}

fn join(state: &mut State, value: &Jinja, given: Rest<ValueOrKwargs>) -> Result<Jinja, Error> {
    let [between, attribute] = named(&given.into_values(), ["d", "attribute"])?;
    let between = between.as_str().unwrap_or_default();
    let items = match attribute.is_undefined() || attribute.is_none() {
        true => value.clone(),
        false => state.apply_filter("map", &[value.clone(), Kwargs::from_iter([("attribute", attribute)]).into()])?,
    };
    if items.is_none() {
        return Err(Error::new(ErrorKind::InvalidOperation, "none has no items"));
    }
    let items: Vec<String> = items.try_iter()?.map(|item| text(&item)).collect();
    Ok(items.join(between).into())
}

/// Adds a filter that takes its arguments either by names or by places, so that it takes both, as in Python.
fn add_named<F, Rv, Args, const N: usize>(
    jinja: &mut Environment<'static>,
    name: &'static str,
    filter: F,
    names: [&'static str; N],
    by_name: bool,
) where
    F: Function<Rv, Args>,
    Rv: FunctionResult,
    Args: for<'a> FunctionArgs<'a>,
{
    let own = format!("__{name}__");
    jinja.add_filter(own.clone(), filter);
    jinja.add_filter(name, move |state: &mut State, value: Jinja, given: Rest<ValueOrKwargs>| {
        let given =
            names.into_iter().zip(named(&given.into_values(), names)?).filter(|(_, value)| !value.is_undefined());
        let given: Vec<Jinja> = match by_name {
            true => vec![given.collect::<Kwargs>().into()],
            false => given.map(|(_, value)| value).collect(),
        };
        state.apply_filter(&own, &[vec![value], given].concat())
    });
}

/// Writes a text, or pairs of names and values, as parts of a URL.
fn urlencode(value: &Jinja) -> Result<String, Error> {
    let quoted = |value: &Jinja, of_pair: bool| -> String {
        let bytes = text(value).into_bytes().into_iter();
        let quote = |byte: u8| match byte {
            b' ' if of_pair => "+".into(),
            b'/' if !of_pair => "/".into(),
            _ if byte.is_ascii_alphanumeric() || b"_.-~".contains(&byte) => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        };
        bytes.map(quote).collect()
    };
    let pairs = match value.kind() {
        ValueKind::Map => value
            .try_iter()?
            .map(|name| Ok([name.clone(), value.get_item(&name)?]))
            .collect::<Result<Vec<_>, Error>>()?,
        ValueKind::Seq => value
            .try_iter()?
            .map(|pair| Ok([0, 1].map(|at| pair.get_item_by_index(at).unwrap_or_default())))
            .collect::<Result<_, Error>>()?,
        _ => return Ok(quoted(value, false)),
    };
    let pairs: Vec<String> =
        pairs.iter().map(|pair| pair.each_ref().map(|part| quoted(part, true)).join("=")).collect();
    Ok(pairs.join("&"))
}

#[cfg(test)]
mod tests {
    use crate::text::ChatTemplate;
    use serde_json::json;

    fn text(expression: &str) -> Result<String, String> {
        let chat = json!({
            "messages": [{"role": "user", "content": "a"}],
            "l": [1, 2, 3], "m": [{"a": "x"}, {"a": 1e-7}], "t": "Hello World foo", "d": {"b": 1, "A": "x"}, "n": null,
        });
        let chat = ChatTemplate::new(&format!("{{{{ {expression} }}}}")).unwrap().render(&chat);
        chat.map(|chat| chat.text).map_err(|error| error.to_string())
    }

    /// The right texts are those of Jinja2.
    fn check(cases: &[(&str, &str)]) {
        for (expression, right) in cases {
            assert_eq!(text(expression).as_deref(), Ok(*right), "{expression}");
        }
    }

    #[test]
    fn values_are_written_as_in_python() {
        check(&[
            ("1e-05", "1e-05"),
            ("1e16", "1e+16"),
            ("1.0", "1.0"),
            ("[1e-7, none, true, 'a']", "[1e-07, None, True, 'a']"),
            ("{'a': 1e20, 1: \"it's\"}", "{'a': 1e+20, 1: \"it's\"}"),
            ("(1,)", "(1,)"),
            ("l[1:]", "[2, 3]"),
            ("[nothing]", "[Undefined]"),
            ("123456789012345678901", "123456789012345678901"),
            ("1e-7 | string | length", "5"),
            ("[1e-7, none, 'x'] | join(', ')", "1e-07, None, x"),
            ("m | join('-', attribute='a')", "x-1e-07"),
        ]);
    }

    #[test]
    fn tests_are_those_of_jinja2() {
        check(&[
            ("n is iterable", "False"),
            ("nothing is iterable", "True"),
            ("tools is iterable and tools | length > 0", "False"),
            ("3 is iterable", "False"),
            ("d is iterable", "True"),
            ("'a' is sequence", "True"),
            ("d is sequence", "True"),
            ("l[1:] is sequence", "True"),
            ("n is sequence", "False"),
            ("1 is sequence", "False"),
            ("range is callable", "True"),
            ("t is callable", "False"),
            ("debug is defined", "False"),
        ]);
    }

    #[test]
    fn filters_are_those_of_jinja2() {
        check(&[
            ("'' | default('x', true)", "x"),
            ("'' | d('x', boolean=true)", "x"),
            ("n | default('x')", "None"),
            ("nothing | default", ""),
            ("'<a b=\"c\">\\'&/' | e", "&lt;a b=&#34;c&#34;&gt;&#39;&amp;/"),
            ("'x' | center(4) ~ '|'", " x  |"),
            ("d | dictsort(true)", "[('A', 'x'), ('b', 1)]"),
            ("d | dictsort(reverse=true)", "[('b', 1), ('A', 'x')]"),
            ("'x' | int", "0"),
            ("'x' | int(7)", "7"),
            ("'x' | float", "0.0"),
            ("'3.9' | int", "3"),
            ("'a\\nb\\n\\nc' | indent(2)", "a\n  b\n\n  c"),
            ("'a\\nb' | indent(width='> ', first=true)", "> a\n> b"),
            ("'a\\n\\nb' | indent(1, blank=true)", "a\n \n b"),
            ("t | truncate(8)", "Hello..."),
            ("t | truncate(8, true, '')", "Hello Wo"),
            ("t | truncate(length=8, leeway=0)", "Hello..."),
            ("t | wordcount", "3"),
            ("'<b>x</b> &amp; z' | striptags", "x & z"),
            ("'a b/c?d=é&' | urlencode", "a%20b/c%3Fd%3D%C3%A9%26"),
            ("{'a': 1, 'b': 'x y'} | urlencode", "a=1&b=x+y"),
            ("1234567 | filesizeformat", "1.2 MB"),
            ("'xax' | trim(chars='x')", "a"),
            ("[1e-7] | trim", "[1e-07]"),
            ("n | trim", "None"),
            ("nothing | trim", ""),
            ("[1e-7] | upper", "[1E-07]"),
            ("'aB' | lower ~ ('aB' | capitalize) ~ ('a b' | title)", "abAbA B"),
            ("nothing | list", "[]"),
            ("[3, 1, 2] | sort(true)", "[3, 2, 1]"),
            ("['a', 'A'] | unique(true) | list", "['a', 'A']"),
            ("l | batch(linecount=2, fill_with='-') | list", "[[1, 2], [3, '-']]"),
        ]);
        assert!(text("'' | default('x', bool=true)").unwrap_err().contains("bool"));
        for refused in ["'a' | truncate(1, 2, 3, 4, 5)", "n | list", "n | join"] {
            assert!(text(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn functions_are_those_of_jinja2() {
        let chat = json!([{"role": "user", "content": "a"}]);
        let text = |template: &str| ChatTemplate::new(template).unwrap().render(&chat).unwrap().text;
        assert_eq!(text("{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}"), "aba");
        assert_eq!(text("{% set j = joiner('; ') %}{{ j() }}a{{ j() }}b"), "a; b");
        assert_eq!(text("{% set j = joiner() %}{{ j() }}a{{ j() }}b"), "a, b");
    }
}
