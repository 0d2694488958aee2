use super::{
    lines::Lines,
    open,
    source::{JsonlSource, KIND},
};
use crate::{
    error::DataError,
    source::{
        Selection, Source,
        cell::{Cell, Record},
        index::{MadePart, save},
    },
    store::{Objects, options::Options},
};
use bytes::Bytes;
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use std::{fs, ops::Deref, path::Path, sync::Arc};
use tempfile::TempDir;

fn write(folder: &Path, files: &[&str]) -> Objects {
    let file = |(n, text): (usize, &&str)| {
        let path = folder.join(format!("{n}.jsonl"));
        fs::write(&path, text).unwrap();
        path
    };
    Objects::local(files.iter().enumerate().map(file).collect()).unwrap()
}

/// A source, and the folder of its files.
#[derive(Debug)]
struct Opened(JsonlSource, #[expect(dead_code, reason = "its drop removes the folder")] TempDir);

impl Deref for Opened {
    type Target = JsonlSource;

    fn deref(&self) -> &JsonlSource {
        &self.0
    }
}

fn opened(files: &[&str], wanted: &Selection) -> Result<Opened, DataError> {
    let folder = tempfile::tempdir().unwrap();
    Ok(Opened(open(write(folder.path(), files), wanted, &Options::default())?, folder))
}

fn some(names: &[(&str, Selection)]) -> Selection {
    Selection::Some(names.iter().map(|(name, wanted)| (Arc::from(*name), wanted.clone())).collect())
}

fn record<const N: usize>(cells: [(&str, Cell); N]) -> Record {
    cells.map(|(name, cell)| (Arc::from(name), cell)).into()
}

fn int(name: &str, value: i64) -> Record {
    record([(name, Cell::Int(value))])
}

#[test]
fn lines_are_rows_however_they_end() {
    let first = "\u{feff}{\"a\": 1}\r\n\n  \r\n\t{\"a\": 2}\n{\"a\": 3}\r\n\n\n";
    let source = opened(&[first, "\n", "\u{feff}", "\n \n", "{\"a\":4}\n  {\"a\":5}"], &Selection::All).unwrap();
    let rows: Vec<Record> = (0..source.len()).map(|row| source.read(row).unwrap()).collect();
    assert_eq!(rows, [1, 2, 3, 4, 5].map(|n| int("a", n)));
    assert_eq!(source.starts().firsts(), [0, 3]);
    assert_eq!(source.there_is(), [("a".to_string(), "number".to_string())]);
    let (name, row) = source.place(4);
    assert!(name.ends_with("4.jsonl") && row == 1, "{name} {row}");
}

#[test]
fn values_become_cells() {
    let line = r#"{"n": null, "t": true, "i": -3, "u": 18446744073709551615, "f": 1.5, "s": "\u00e4\n", "l": [1, [], "x"],
        "o": {"p": {"q": 1}}}"#;
    let source = opened(&[&line.replace('\n', " ")], &Selection::All).unwrap();
    let list = Cell::List(vec![Cell::Int(1), Cell::List(vec![]), Cell::Text("x".into())]);
    let object = Cell::Struct(record([("p", Cell::Struct(int("q", 1)))]));
    let whole = record([
        ("n", Cell::Null),
        ("t", Cell::Bool(true)),
        ("i", Cell::Int(-3)),
        ("u", Cell::Unsigned(u64::MAX)),
        ("f", Cell::F64(1.5)),
        ("s", Cell::Text("ä\n".into())),
        ("l", list),
        ("o", object),
    ]);
    assert_eq!(source.read(0).unwrap(), whole);
    let kinds: Vec<String> = source.there_is().into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, ["null", "boolean", "number", "number", "number", "string", "array", "object"]);
}

#[test]
fn numbers_of_arbitrary_precision_are_numbers() {
    let number = |text: &str| format!("{{\"a\": {{\"$serde_json::private::Number\": \"{text}\"}}}}\n");
    let text = number("-7") + &number("18446744073709551615") + &number("2.5e3") + &number("x");
    let source = opened(&[&text], &Selection::All).unwrap();
    let cells = [Cell::Int(-7), Cell::Unsigned(u64::MAX), Cell::F64(2500.0)];
    cells.into_iter().enumerate().for_each(|(row, cell)| assert_eq!(source.read(row).unwrap(), record([("a", cell)])));
    assert!(source.read(3).unwrap_err().to_string().contains("`x` is no number"));
}

#[test]
fn only_wanted_keys_are_kept_also_inside() {
    let line = r#"{"z": {"deep": [1, {"x": 2}]}, "b": [{"c": 1, "d": 2}, {"d": 3}], "a": 1, "e": {"d": 1, "c": null}}"#;
    let inner = some(&[("c", Selection::All)]);
    let wanted = some(&[("a", Selection::All), ("b", inner.clone()), ("e", inner), ("none", Selection::All)]);
    let list = Cell::List(vec![Cell::Struct(int("c", 1)), Cell::Struct(vec![])]);
    let object = Cell::Struct(record([("c", Cell::Null)]));
    let source = opened(&[line], &wanted).unwrap();
    assert_eq!(source.read(0).unwrap(), record([("b", list), ("a", Cell::Int(1)), ("e", object)]));
    assert_eq!(source.there_is().len(), 4);
}

#[test]
fn a_bad_line_is_an_error_of_its_row_alone() {
    let deep = format!("{{\"a\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let bad = [
        (r#"[1]"#, "expected an object"),
        (r#"{"a": 1"#, "EOF while parsing an object at column 7"),
        (r#"{"a": 1} {"a": 2}"#, "trailing"),
        (r#"{"a": 1, "b": 1, "a": 2}"#, "the key `a` is there twice"),
        (&deep, "recursion"),
        ("nope", "expected ident at column 2"),
    ];
    for (line, problem) in bad {
        let text = format!("{{\"a\": 0}}\n{line}\n{{\"a\": 2}}");
        let source = opened(&["{\"a\": 9}", &text], &some(&[("a", Selection::All)])).unwrap();
        assert_eq!([1, 3].map(|row| source.read(row).unwrap()), [0, 2].map(|n| int("a", n)));
        let error = source.read(2).unwrap_err();
        assert!(matches!(&error, DataError::Row { object, row: 1, .. } if object.ends_with("1.jsonl")), "{error}");
        assert!(error.to_string().contains(problem), "{error}");
        // A bad first line does not keep the data set from being opened.
        assert!(!opened(&[&format!("{line}\n{{\"a\": 2}}")], &Selection::All).unwrap().there_is().is_empty());
        match opened(&[line], &Selection::All) {
            Err(DataError::Format { .. }) if line == "[1]" => {}
            Ok(_) => {}
            other => panic!("{other:?}"),
        }
    }
    // Twice is no matter where the key is not wanted.
    let wanted = some(&[("a", Selection::All)]);
    let source = opened(&["{\"a\": 1}\n{\"b\": 1, \"a\": 1, \"b\": 2}"], &wanted).unwrap();
    assert_eq!(source.read(1).unwrap(), int("a", 1));
}

#[test]
fn rows_are_read_together_as_one_by_one() {
    let files = ["{\"a\": 0}\n\nno\r\n  {\"a\": 2}  \n", "{\"a\": 3}"];
    let source = opened(&files, &Selection::All).unwrap();
    for first in 0..source.len() {
        for most in 1..5 {
            let run = source.run(first, most).unwrap();
            let end = if first < 3 { 3 } else { 4 };
            assert_eq!(run.len(), most.min(end - first));
            for (row, read) in (first..).zip(run) {
                assert_eq!(format!("{read:?}"), format!("{:?}", source.read(row)));
            }
        }
    }
    // No more is read than a block has.
    let long = format!("{{\"a\": \"{}\"}}\n", "x".repeat(3 << 20)).repeat(3);
    assert_eq!(opened(&[&long], &Selection::All).unwrap().run(0, 3).unwrap().len(), 1);
}

#[test]
fn a_file_without_a_good_line_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    let open = |text: &str| {
        fs::write(&path, text).unwrap();
        crate::Rows::<(u8,)>::jsonl(&path).columns(["a"]).open().unwrap_err()
    };
    let error = open("a\n1\n");
    assert!(matches!(error, DataError::Row { row: 0, .. }), "{error}");
    for table in ["a,b\n1,2\n", "a;b\r\n1;2\r\n", "\u{feff}a\tb\n1\t2", "\"a, b\",c\n1,2\n"] {
        let error = open(table);
        assert!(matches!(&error, DataError::Format { .. }) && error.to_string().contains("CSV"), "{error}");
    }
}

#[test]
fn compressed_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), [0x1f, 0x8b, 8, 0]).unwrap();
    let objects = Objects::local(vec![folder.path().join("a")]).unwrap();
    let error = open(objects, &Selection::All, &Options::default()).unwrap_err();
    assert!(matches!(&error, DataError::Format { .. }) && error.to_string().contains("gzip"), "{error}");
}

#[test]
fn lines_that_cross_pieces_are_found() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let (mut text, mut expected) = (String::new(), Vec::new());
    while text.len() < 9 << 20 {
        for _ in 0..rng.random_range(0..3) {
            text += ["\n", "\r\n", "  \n"][rng.random_range(0..3)];
        }
        let long =
            if rng.random_range(0..20) == 0 { rng.random_range(0..3 << 20) } else { rng.random_range(0..90_000) };
        text += &format!("{{\"n\": {}, \"text\": \"{}\"}}\n", expected.len(), "x".repeat(long));
        expected.push(long);
    }
    let source = opened(&[&text], &Selection::All).unwrap();
    assert_eq!(source.len(), expected.len());
    for (n, long) in expected.iter().enumerate() {
        let row = source.read(n).unwrap();
        assert_eq!(row, record([("n", Cell::Int(n as i64)), ("text", Cell::Text("x".repeat(*long)))]));
    }
}

/// The index of a file whose rows are in these places.
fn made(places: &[u64]) -> MadePart {
    let bytes: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
    MadePart::new(places.len().saturating_sub(1), Bytes::new(), &bytes)
}

#[test]
fn blocks_are_runs_of_some_bytes() {
    let runs = |starts: &[u64], bytes| Lines(made(starts).of_object("a")).runs(bytes);
    assert_eq!(runs(&[0, 10, 20, 30, 40, 50], 20).unwrap(), [2, 2, 1]);
    assert_eq!(runs(&[0, 100, 110, 120], 20).unwrap(), [1, 2]);
    assert_eq!(runs(&[3, 9], 1).unwrap(), [1]);
    assert_eq!(runs(&[9], 1).unwrap(), [0; 0]);
    assert!(runs(&[], 1).is_err());
    let many: Vec<u64> = (0..=10_000).collect();
    assert_eq!(runs(&many, 4000).unwrap(), [4000, 4000, 2000]);
}

#[test]
fn a_damaged_saved_index_gives_right_rows() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..50).map(|n| format!("{{\"a\": {n}}}\n")).collect();
    let make = || open(write_once(folder.path(), &text), &Selection::All, &Options::default());
    make().unwrap();
    let index = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let index = index.into_iter().find(|path| path.extension().is_some_and(|it| it == "index")).unwrap();
    let (good, mut rng) = (fs::read(&index).unwrap(), ChaCha8Rng::seed_from_u64(5));
    for _ in 0..3000 {
        let mut bad = good.clone();
        let at = rng.random_range(0..bad.len());
        match rng.random_range(0..3) {
            0 => bad.truncate(at),
            1 => bad[at] ^= 1 << rng.random_range(0..8),
            _ => drop(bad.splice(at..at, [1; 8])),
        }
        fs::write(&index, bad).unwrap();
        let source = match make() {
            // Of a file that was not touched, a part is checked when it is used.
            Err(DataError::Index { .. }) => continue,
            source => source.unwrap(),
        };
        assert_eq!(source.len(), 50);
        (0..50).step_by(7).for_each(|row| assert_eq!(source.read(row).unwrap(), int("a", row as i64)));
    }
}

#[test]
fn a_saved_index_whose_places_lie_is_made_again() {
    // The checksums are right, and the numbers are not.
    let folder = tempfile::tempdir().unwrap();
    let objects = write_once(folder.path(), "{\"a\": 1}\n");
    let options = Options::default();
    for places in [vec![u64::MAX, 0], vec![0, u64::MAX], vec![5, 2], vec![0, 1 << 50, 3], vec![9], vec![1, 9]] {
        save(&objects, KIND, &options, &[made(&places)]).unwrap();
        let source = open(objects.clone(), &Selection::All, &options).unwrap();
        assert_eq!((source.len(), source.read(0).unwrap()), (1, int("a", 1)), "{places:?}");
    }
    save(&objects, KIND, &options, &[MadePart::new(0, Bytes::new(), b"odd")]).unwrap();
    assert_eq!(open(objects, &Selection::All, &options).unwrap().len(), 1);
}

/// Writes a file if it is not there, so that its time stays.
fn write_once(folder: &Path, text: &str) -> Objects {
    let path = folder.join("a.jsonl");
    if !path.exists() {
        fs::write(&path, text).unwrap();
    }
    Objects::local(vec![path]).unwrap()
}

#[test]
fn a_name_that_is_given_twice_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    fs::write(&path, "{\"a\": 1, \"b\": 2}\n").unwrap();
    let open =
        |names: [&'static str; 2]| crate::Rows::<(Option<u8>, Option<u8>)>::jsonl(path.as_path()).columns(names).open();
    assert!(open(["a", "b"]).is_ok());
    let error = open(["a", "a"]).unwrap_err();
    assert!(matches!(&error, DataError::Option { option: "columns", .. }), "{error}");
    assert!(error.to_string().contains("`a` twice"), "{error}");
}
