//! A name is one thing: no type name stands twice in a crate, each type name is a noun, and a method that several types have
//! belongs to a trait. `src/README.md` says it to whoever adds a name.
//!
//! The rules are for what stands in the source trees, outside tests and macros.

#[path = "common/rust_files.rs"]
mod rust_files;

use rust_files::rust_files;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The sources of each crate.
const CRATES: [&str; 4] = ["src", "crates/burn-shards/src", "crates/burn-augment/src", "crates/burn-pinned-derive/src"];

/// Words that are no name of a type by themselves: pronouns, adverbs, prepositions, verbs, and participles without `ed` at their
/// end. They say what was done with a thing, or where it is, and not what it is.
const NO_NOUNS: &[&str] = &[
    "All", "Any", "Are", "Away", "Awaits", "Before", "Begun", "Behind", "Beside", "Both", "Broken", "Brought", "Built",
    "By", "Caught", "Chosen", "Doing", "Done", "Drawn", "Each", "Either", "Every", "Few", "Found", "From", "Given",
    "Gone", "Has", "Held", "Here", "Hidden", "How", "Inner", "Into", "Is", "It", "Its", "Kept", "Known", "Laid",
    "Left", "Lent", "Lost", "Made", "Make", "Many", "More", "Most", "Newest", "Now", "Of", "On", "Other", "Others",
    "Out", "Outer", "Put", "Ready", "Rest", "Said", "Same", "Seen", "Sent", "Set", "Shown", "Shut", "Spent", "Such",
    "Taken", "That", "Their", "Them", "There", "These", "They", "This", "Those", "Told", "To", "Want", "Was", "What",
    "When", "Where", "Which", "Who", "Whole", "Whose", "With", "Within", "Without", "Written", "Wrong",
];

/// Nouns that end as a participle does.
const NOUNS_IN_ED: &[&str] = &["Feed", "Need", "Seed", "Speed"];

/// Public names, which stay, and the one that Rust's programmers have for a trait that nobody else implements.
const NAMES_THAT_STAY: &[&str] =
    &["Annotated", "Decoded", "Distributed", "Erased", "Fetched", "Launched", "Sealed", "Tokenized"];

/// Methods that std's types and traits have too.
const STD: &[&str] = &["add", "find", "read", "set", "take", "wait", "write"];

/// Verbs that many types have, each with arguments of its own, so that a trait of them would have no user.
const VERBS: &[&str] = &["check", "close", "decode", "end", "note", "turn"];

/// A type, or a method with the type that has it.
#[derive(Debug, Clone, PartialEq)]
struct Name {
    name: String,
    of: String,
    line: usize,
}

/// Where each name of a crate stands: the file, and what has the name.
type Places = BTreeMap<String, Vec<(String, Name)>>;

/// The words and signs of a text outside comments and quotation marks, each with its line.
fn tokens(text: &str) -> Vec<(&str, usize)> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 128;
    let (mut at, mut line, mut found) = (0, 1, Vec::new());
    while at < text.len() {
        let rest = &text[at..];
        let word = rest.as_bytes().iter().take_while(|byte| is_word(byte)).count();
        let skipped = comment(rest).or_else(|| quoted(rest));
        let length = skipped.unwrap_or(word.max(rest.chars().next().map_or(1, char::len_utf8)));
        let token = &rest[..length.min(rest.len())];
        if skipped.is_none() && !token.trim().is_empty() {
            found.push((token, line));
        }
        line += token.matches('\n').count();
        at += token.len();
    }
    found
}

/// The length of a comment that begins here.
fn comment(rest: &str) -> Option<usize> {
    let end = if rest.starts_with("//") { "\n" } else { rest.starts_with("/*").then_some("*/")? };
    Some(rest.find(end).map_or(rest.len(), |at| at + end.len()))
}

/// The length of a text or a character in quotation marks that begins here. A lifetime has one mark alone.
fn quoted(rest: &str) -> Option<usize> {
    let inner = rest.trim_start_matches('b');
    let before = rest.len() - inner.len();
    if let Some(raw) = inner.strip_prefix('r') {
        let hashes = raw.bytes().take_while(|byte| *byte == b'#').count();
        let text = raw[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(before + 2 + hashes + text.find(&end)? + end.len());
    }
    let (mark, text) = (inner.chars().next().filter(|mark| ['"', '\''].contains(mark))?, &inner[1..]);
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => drop(chars.next()),
            _ if char == mark => return Some(before + 1 + at + 1),
            _ if mark == '\'' && !text[at + char.len_utf8()..].starts_with('\'') => return None,
            _ => {}
        }
    }
    None
}

/// What braces are around.
#[derive(Clone, Copy, PartialEq)]
enum Braces<'a> {
    /// The methods of the type of this name.
    Methods(&'a str),
    /// A trait, or a type's methods of one. A `type` there is an associated one.
    Trait,
    /// Tests and macros.
    Skipped,
    /// Items of a file or a module, code, fields.
    Other,
}

/// The types of a text, and the methods that its types have of their own and that do something.
fn names(text: &str) -> (Vec<Name>, Vec<Name>) {
    let all = tokens(text);
    let word = |at: usize| all.get(at).map_or("", |(word, _)| *word);
    let (mut types, mut methods) = (Vec::new(), Vec::new());
    let (mut open, mut next) = (Vec::new(), Braces::Other);
    for (at, (now, line)) in all.iter().copied().enumerate() {
        let around = open.last().copied().unwrap_or(Braces::Other);
        let name = |of: &str| Name { name: word(at + 1).into(), of: of.into(), line };
        match now {
            "{" => {
                open.push(if around == Braces::Skipped { Braces::Skipped } else { next });
                next = Braces::Other;
            }
            "}" => drop(open.pop()),
            ";" => next = Braces::Other,
            _ if around == Braces::Skipped || next == Braces::Skipped => {}
            "#" if is_of_tests(&all[at..]) => next = Braces::Skipped,
            "macro_rules" => next = Braces::Skipped,
            "impl"
                if next == Braces::Other
                    && ![")", ":", ",", "(", "<", ">", "&"].contains(&word(at.wrapping_sub(1))) =>
            {
                next = implemented(&all[at + 1..]);
            }
            "struct" | "enum" | "trait" | "union" | "type" if word(at + 1).starts_with(char::is_uppercase) => {
                if now != "type" || !matches!(around, Braces::Trait | Braces::Methods(_)) {
                    types.push(name(""));
                }
                next = if now == "trait" { Braces::Trait } else { Braces::Other };
            }
            "fn" => {
                if let Braces::Methods(of) = around
                    && !is_public(&all[..at])
                    && does_something(&all[at..])
                {
                    methods.push(name(of));
                }
                next = Braces::Other;
            }
            _ => {}
        }
    }
    (types, methods)
}

/// Whether an attribute of tests begins here.
fn is_of_tests(rest: &[(&str, usize)]) -> bool {
    let words: Vec<&str> = rest.iter().map(|(word, _)| *word).take_while(|word| *word != "]").collect();
    words.starts_with(&["#", "[", "cfg", "("])
        && words.contains(&"test")
        && !words.contains(&"any")
        && !words.windows(3).any(|words| words == ["not", "(", "test"])
}

/// What the braces of an `impl` are around: the methods of a type, or those of a trait.
fn implemented<'a>(rest: &[(&'a str, usize)]) -> Braces<'a> {
    let (mut depth, mut of, mut before) = (0, "", "");
    for (word, _) in rest {
        match *word {
            "<" => depth += 1,
            ">" if before != "-" => depth -= 1,
            "for" if depth == 0 => return Braces::Trait,
            "{" | "where" => break,
            name if depth == 0 && name.starts_with(char::is_uppercase) => of = name,
            _ => {}
        }
        before = word;
    }
    Braces::Methods(of)
}

/// Whether the function that these words lead to is public. What is public is named for users, and stays.
fn is_public(before: &[(&str, usize)]) -> bool {
    let mut words =
        before.iter().rev().map(|(word, _)| *word).skip_while(|word| ["const", "unsafe", "async"].contains(word));
    words.next() == Some("pub")
}

/// Whether a function has a `self`, and takes more than that or gives no result. A method that gives a property of its type has the
/// property's name, and one that gives its own type back is an option of a builder.
fn does_something(rest: &[(&str, usize)]) -> bool {
    let words: Vec<&str> = rest.iter().map(|(word, _)| *word).take_while(|word| !["{", ";"].contains(word)).collect();
    let mut depth = 0;
    let open = words.windows(2).position(|pair| {
        match pair {
            [_, "<"] => depth += 1,
            [before, ">"] if *before != "-" => depth -= 1,
            _ => {}
        }
        depth == 0 && pair[1] == "("
    });
    let Some(open) = open.map(|at| at + 1) else { return false };
    let first = words[open + 1..].iter().take_while(|word| ![",", ")", ":"].contains(*word));
    let result = words.windows(2).rposition(|pair| pair == ["-", ">"]).map_or(&[][..], |at| &words[at..]);
    let takes_more = words[open + 1..].iter().find(|word| [",", ")"].contains(*word)) == Some(&",");
    first.into_iter().any(|word| *word == "self") && (takes_more || result.is_empty()) && !result.contains(&"Self")
}

/// Whether a name of one word says what was done with a thing, or points at it.
fn is_no_noun(name: &str) -> bool {
    let is_participle = name.ends_with("ed") && !NOUNS_IN_ED.contains(&name);
    let is_one_word = name.chars().filter(|char| char.is_uppercase()).count() == 1;
    is_one_word && (is_participle || NO_NOUNS.contains(&name)) && !NAMES_THAT_STAY.contains(&name)
}

/// The types of a crate, and the methods of its types.
fn places(sources: &str) -> [Places; 2] {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    rust_files(&root.join(sources), &mut paths);
    paths.sort();
    let mut all = [Places::new(), Places::new()];
    for path in paths {
        let shown = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
        let is_test = |part: &str| ["tests", "model", "cases"].contains(&part.trim_end_matches(".rs"));
        if shown.split('/').any(is_test) {
            continue;
        }
        let (types, methods) = names(&fs::read_to_string(&path).unwrap());
        for (places, names) in all.iter_mut().zip([types, methods]) {
            for name in names {
                places.entry(name.name.clone()).or_default().push((shown.clone(), name));
            }
        }
    }
    all
}

/// Fails with the names of all crates that `is_wrong` finds.
fn check(rule: &str, kind: usize, is_wrong: impl Fn(&str, &[(String, Name)]) -> bool) {
    let mut faults = Vec::new();
    for sources in CRATES {
        for (name, of) in places(sources)[kind].iter().filter(|(name, of)| is_wrong(name, of)) {
            let at = of.iter().map(|(path, name)| format!("{path}:{} {}", name.line, name.of));
            faults.push(format!("{name}: {}", at.collect::<Vec<_>>().join(", ")));
        }
    }
    assert!(faults.is_empty(), "{rule}. That is not so of {} names:\n{}", faults.len(), faults.join("\n"));
}

/// A file may have a type once for each `cfg`.
#[test]
fn a_type_name_stands_once_in_a_crate() {
    let stands_twice = |of: &[(String, Name)]| of.iter().any(|(path, _)| *path != of[0].0);
    check("The name of a type stands once in a crate", 0, |_, of| stands_twice(of));
}

#[test]
fn a_type_name_is_a_noun() {
    check("The name of a type says what a thing is, and not what was done with it", 0, |name, _| is_no_noun(name));
}

#[test]
fn a_method_of_several_types_belongs_to_a_trait() {
    check("A method that more than two types have belongs to a trait", 1, |name, of| {
        let types: BTreeSet<&String> = of.iter().map(|(_, name)| &name.of).collect();
        types.len() > 2 && !STD.contains(&name) && !VERBS.contains(&name)
    });
}

/// The check finds what it is for.
#[test]
fn names_of_a_text_are_found() {
    let text = r##"
        // struct InComment; /* a */
        /// `struct InDocs;`
        pub(crate) struct Outer<'a, T>(&'a T);
        type Alias = fn(char) -> u8;
        fn code() -> char {
            struct Inside;
            let _texts = ["struct InText {", r#"struct "InRaw" {"#, b"struct InBytes"];
            let _chars = ['"', '\'', '{'];
            '}'
        }
        impl<'a, T: Into<Vec<u8>>> Outer<'a, T> where T: Clone {
            const fn property(&self) -> usize { 1 }
            fn act(&mut self, by: impl Fn(u8) -> u8) -> usize { 2 }
            fn generic<F: Fn(u8) -> u8>(self: &Arc<F>, by: F) {}
            fn note(&self) {}
            fn new(by: usize) -> usize { 3 }
            fn option(self, by: usize) -> Self { self }
            pub(crate) fn crate_wide(&self, by: usize) {}
            pub const fn public(&self, by: usize) {}
        }
        impl<T> Iterator for Outer<'_, T> { type Item = T; fn next(&mut self) -> Option<T> { None } }
        trait Trait { type Associated; fn method(&self, by: usize); }
        macro_rules! skipped { ($name:ident) => { struct InMacro; } }
        #[cfg(not(test))]
        enum Plain { Variant }
        #[cfg(test)]
        mod tests { struct InTests; }
        union Last { a: u8 }
    "##;
    let (types, methods) = names(text);
    let of_types: Vec<&str> = types.iter().map(|name| &*name.name).collect();
    assert_eq!(of_types, ["Outer", "Alias", "Inside", "Trait", "Plain", "Last"]);
    let of_methods: Vec<_> = methods.iter().map(|name| (&*name.of, &*name.name, name.line)).collect();
    assert_eq!(
        of_methods,
        [("Outer", "act", 14), ("Outer", "generic", 15), ("Outer", "note", 16), ("Outer", "crate_wide", 19)]
    );
}

#[test]
fn words_that_are_no_nouns_are_found() {
    for name in [
        "Taken", "Made", "Held", "Lent", "Is", "Want", "Here", "Rest", "Found", "Asked", "Known", "Mended", "Wrong",
        "Given",
    ] {
        assert!(is_no_noun(name), "{name}");
    }
    for name in ["Feed", "Seed", "TakenBatch", "PackedRows", "Distributed", "Reading"] {
        assert!(!is_no_noun(name), "{name}");
    }
}
