//! Lengths that were saved of another text, or of other rows.

use burn_shards::{Rows, TokenRow, tokenizer};
use serde::{Deserialize, de::DeserializeOwned};
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

const ROWS: usize = 1000;

/// The lengths of the text that `take` gives, by a tokeniser of one name, and how many rows were tokenised for them.
fn lengths<T: 'static>(rows: Rows<T>, take: impl Fn(&T) -> String + Send + Sync + 'static) -> (Vec<u32>, usize) {
    let count = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&count);
    let rows = rows.tokenized(tokenizer("bytes", move |row: &T, out: &mut TokenRow| {
        counts.fetch_add(1, Relaxed);
        out.extend(take(row).bytes().map(u32::from));
        Ok(())
    }));
    let lengths = rows.lengths().unwrap().as_ref().to_vec();
    (lengths, count.load(Relaxed))
}

/// Saves lengths of one text, and checks that those of the other are its own, and that those of the first hold.
fn check<T: DeserializeOwned + 'static>(
    open: impl Fn() -> Rows<T>,
    one: fn(&T) -> String,
    other: fn(&T) -> String,
    right: impl Fn(usize) -> usize,
) {
    let (first, made) = lengths(open(), one);
    assert_eq!(made, ROWS);
    let (again, compared) = lengths(open(), one);
    assert!(again == first && compared < 30, "{compared} rows were compared");
    let (others, made) = lengths(open(), other);
    let wrong = (0..ROWS).filter(|row| others[*row] as usize != right(*row)).count();
    assert_eq!(wrong, 0, "of {ROWS} lengths are stale, after {made} rows were tokenised");
}

/// Whether a row is one of the ten that differ.
fn is_rare(row: usize) -> bool {
    row % 100 == 37
}

fn lines(folder: &Path, line: impl Fn(usize) -> serde_json::Value) -> impl Fn() -> std::path::PathBuf {
    let path = folder.join("rows.jsonl");
    fs::write(&path, (0..ROWS).map(|row| format!("{}\n", line(row))).collect::<String>()).unwrap();
    move || path.clone()
}

#[test]
fn lengths_of_another_text_are_made_again_where_ten_rows_differ() {
    #[derive(Deserialize)]
    struct Row {
        text: String,
        clean: String,
    }
    let folder = tempfile::tempdir().unwrap();
    let path = lines(folder.path(), |row| {
        let text = format!("text {row}");
        serde_json::json!({"clean": if is_rare(row) { "" } else { &*text }, "text": text})
    });
    let open = || Rows::<Row>::jsonl(path()).open().unwrap();
    let right = |row: usize| if is_rare(row) { 0 } else { format!("text {row}").len() };
    check(open, |row| row.text.clone(), |row| row.clean.clone(), right);
}

#[test]
fn lengths_of_another_text_of_a_list_or_of_an_object_are_made_again() {
    #[derive(Deserialize)]
    struct Message {
        said: String,
        raw: String,
    }
    #[derive(Deserialize)]
    struct Row {
        messages: Vec<Message>,
        by_language: BTreeMap<String, String>,
    }
    let folder = tempfile::tempdir().unwrap();
    let path = lines(folder.path(), |row| {
        let (said, raw) = (format!("said {row}"), if is_rare(row) { "rare".into() } else { format!("said {row}") });
        let other = if is_rare(row) { "drei" } else { "one" };
        serde_json::json!({
            "messages": [{"said": "a", "raw": "a"}, {"said": said, "raw": raw}],
            "by_language": {"en": "one", "de": other},
        })
    });
    let open = |place: &str| Rows::<Row>::jsonl(path()).index_dir(folder.path().join(place)).open().unwrap();
    check(
        || open("list"),
        |row| row.messages.iter().map(|message| &*message.said).collect(),
        |row| row.messages.iter().map(|message| &*message.raw).collect(),
        |row| if is_rare(row) { 5 } else { 1 + format!("said {row}").len() },
    );
    check(
        || open("object"),
        |row| row.by_language["en"].clone(),
        |row| row.by_language["de"].clone(),
        |row| if is_rare(row) { 4 } else { 3 },
    );
}

#[test]
fn lengths_of_one_text_more_are_made_again_where_one_row_has_it() {
    type Row = (String, Option<String>);
    let folder = tempfile::tempdir().unwrap();
    let path = lines(folder.path(), |row| {
        let title = (row == 612).then_some("a title");
        serde_json::json!({"text": format!("text {row}"), "title": title})
    });
    let open = || Rows::<Row>::jsonl(path()).columns(["text", "title"]).open().unwrap();
    let with_title = |(text, title): &Row| format!("{}{text}", title.as_deref().unwrap_or_default());
    let right = |row: usize| format!("text {row}").len() + if row == 612 { 7 } else { 0 };
    check(open, |(text, _)| text.clone(), with_title, right);
}

#[test]
fn a_text_that_is_the_same_everywhere_needs_no_other_lengths() {
    type Row = (String, String);
    let folder = tempfile::tempdir().unwrap();
    let path = lines(folder.path(), |row| serde_json::json!({"one": format!("{row}"), "two": format!("{row}")}));
    let open = || Rows::<Row>::jsonl(path()).columns(["one", "two"]).open().unwrap();
    let first = lengths(open(), |(one, _)| one.clone()).0;
    let (second, compared) = lengths(open(), |(_, two)| two.clone());
    assert!(first == second && compared < 30, "{compared} rows");
}

#[test]
fn shards_in_another_order_have_lengths_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, lines: &[&str]| {
        let path = folder.path().join(name);
        fs::write(&path, lines.iter().map(|text| format!("{{\"text\": \"{text}\"}}\n")).collect::<String>()).unwrap();
        path
    };
    let paths = [write("a.jsonl", &["a", "bb", "c"]), write("b.jsonl", &["d", "e", "ff"])];
    let of = |paths: Vec<_>| {
        lengths(Rows::<(String,)>::jsonl(paths).columns(["text"]).open().unwrap(), |(text,)| text.clone()).0
    };
    assert_eq!(of(paths.to_vec()), [1, 2, 1, 1, 1, 2]);
    assert_eq!(of(vec![paths[1].clone(), paths[0].clone()]), [1, 1, 2, 1, 2, 1]);
    assert_eq!(of(vec![paths[1].clone()]), [1, 1, 2]);
}

#[test]
fn rows_that_were_too_large_are_not_left_out_under_another_limit() {
    const LARGE: usize = 512; // many rows are read at once, and this one is the first of them
    let folder = tempfile::tempdir().unwrap();
    let path =
        lines(folder.path(), |row| serde_json::json!({"text": "x".repeat(if row == LARGE { 30_000 } else { 1 })}));
    let of = |limit: u64| {
        let rows = Rows::<(String,)>::jsonl(path()).columns(["text"]).largest_sample(limit).open().unwrap();
        let bytes = tokenizer("bytes", |(text,): &(String,), out: &mut TokenRow| {
            out.extend(text.bytes().map(u32::from));
            Ok(())
        });
        rows.tokenized(bytes).leave_out_bad_rows().lengths().unwrap().as_ref().to_vec()
    };
    assert_eq!(of(50)[LARGE], 0);
    assert_eq!(of(1_000_000)[LARGE], 30_000);
}
