//! A saved index, and another file of the same size and time in the place of its file: rows are those of the file.

use crate::shards::{Entry, file, mds_index, mds_shard, replace, tar};
use burn::data::dataset::Dataset;
use burn_shards::{Rows, RowsBuilder};
use std::{fs, path::Path};

fn texts(builder: RowsBuilder<(String,)>) -> Vec<String> {
    let rows = builder.open().unwrap();
    (0..rows.len()).map(|row| rows.get(row).unwrap().0).collect()
}

fn lines(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{{\"x\": \"{text}\"}}\n")).collect()
}

/// Opens the first file, so that its index is saved, and the others in its place.
fn jsonl(files: &[String]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "a.jsonl", &files[0]);
    let open = || texts(Rows::jsonl(&path).columns(["x"]));
    open();
    let read = |other: &String| {
        replace(&path, other);
        open()
    };
    files.iter().skip(1).map(read).collect()
}

#[test]
fn rows_of_json_lines_are_those_of_the_file() {
    let many = |first: usize, other: usize| -> Vec<String> {
        (0..400).map(|n| "x".repeat(20 + usize::from(n == first) - usize::from(n == other))).collect()
    };
    let cases: [[&[&str]; 2]; 4] = [
        [&["abc", "d", "ef"], &["a", "bcd", "ef"]],    // the first
        [&["abc", "def", "g"], &["abc", "d", "efg"]],  // the last
        [&["abcdefghijklmnopqrst", "k"], &["a", "k"]], // another number
        [&["a", "bcdefghijklmnopqrstuvwx"], &["a", "b"]],
    ];
    for [before, after] in cases {
        let (before, mut after) = (lines(before), lines(after));
        // What is left is a row of its own.
        let missing = before.len() - after.len();
        let filled = (missing > 0).then(|| "y".repeat(missing - lines(&[""]).len()));
        after += &filled.iter().map(|text| lines(&[text])).collect::<String>();
        let right: Vec<String> =
            after.lines().map(|line| line.trim_start_matches("{\"x\": \"").trim_end_matches("\"}").into()).collect();
        assert_eq!(jsonl(&[before, after]), [right]);
    }
    // All rows between two are elsewhere.
    let file = |texts: &[String]| lines(&texts.iter().map(|text| &**text).collect::<Vec<_>>());
    let (before, after) = (many(1, 398), many(398, 1));
    assert_eq!(jsonl(&[file(&before), file(&after)]), [after]);
    // A line in the place of two, and two in the place of one.
    let (one, two) = (lines(&["a"]) + "        \n" + &lines(&["b"]), lines(&["a"]) + "{\"x\":1}\n" + &lines(&["b"]));
    let folder = tempfile::tempdir().unwrap();
    let path = crate::shards::file(folder.path(), "a.jsonl", one.replace("        \n", "       \n"));
    assert_eq!(Rows::<(Option<serde_json::Value>,)>::jsonl(&path).columns(["x"]).open().unwrap().len(), 2);
    replace(&path, two);
    assert_eq!(Rows::<(Option<serde_json::Value>,)>::jsonl(&path).columns(["x"]).open().unwrap().len(), 3);
}

#[test]
fn an_index_that_fits_is_taken_whatever_blank_lines_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let text = "\u{feff}\n\r\n".to_string() + &lines(&["a", "b"]) + "\n \n" + &lines(&["c"]) + "\r\n{\"x\": \"d\"}  ";
    let path = file(folder.path(), "a.jsonl", text);
    let open = || texts(Rows::jsonl(&path).columns(["x"]));
    let index = || {
        let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
        let index = files.into_iter().find(|entry| entry.path().extension().is_some_and(|it| it == "index")).unwrap();
        (index.file_name(), index.metadata().unwrap().modified().unwrap())
    };
    assert_eq!(open(), ["a", "b", "c", "d"]);
    let made = index();
    assert_eq!(open(), ["a", "b", "c", "d"]);
    assert_eq!(index(), made, "it is not written again");
}

fn tars(before: &[Entry], after: &[Entry], column: &str, index: Option<&str>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let (mut before, mut after) = (tar(before), tar(after));
    let size = before.len().max(after.len()).next_multiple_of(10_240);
    before.resize(size, 0);
    after.resize(size, 0);
    let path = file(folder.path(), "a.tar", before);
    if let Some(index) = index {
        file(folder.path(), "a.idx", index);
    }
    let open = || texts(Rows::tar(&path).columns([column]));
    open();
    replace(&path, after);
    open()
}

const F: u8 = b'0';

#[test]
fn rows_of_a_tar_are_those_of_the_file() {
    let long = [7; 600];
    let long = std::str::from_utf8(&long).unwrap();
    let one: [Entry; 2] = [(F, "1.txt", b"a"), (F, "2.txt", b"b")];
    // Another name, size, extension, or number of rows, at the beginning and at the end.
    assert_eq!(tars(&one, &[(F, "1.txt", b"ab"), (F, "2.txt", b"b")], "txt", None), ["ab", "b"]);
    assert_eq!(tars(&one, &[(F, "1.txt", b"a"), (F, "2.txt", b"bc")], "txt", None), ["a", "bc"]);
    assert_eq!(tars(&one, &[(F, "1.txt", b"a"), (F, "2.txt", b"b"), (F, "3.txt", b"c")], "txt", None), ["a", "b", "c"]);
    assert_eq!(tars(&one, &[(F, "0", b"a"), (F, "2.txt", b"b")], "txt", None), ["b"]);
    let three: [Entry; 3] = [(F, "info", b""), (F, "1.txt", b"a"), (F, "2.txt", b"b")];
    assert_eq!(tars(&three, &[(F, "0.txt", b""), (F, "1.txt", b"a"), (F, "2.txt", b"b")], "txt", None), ["", "a", "b"]);
    assert_eq!(tars(&one, &[(F, "1.txt", long.as_bytes())], "txt", None), [long]);
    let pair: [Entry; 2] = [(F, "1.txt", b"a"), (F, "1.cls", b"2")];
    assert_eq!(tars(&pair, &[(F, "1.txt", b"a"), (F, "2.txt", b"2")], "txt", None), ["a", "2"]);
    assert_eq!(tars(&pair, &[(F, "1.cls", b"a"), (F, "1.txt", b"2")], "txt", None), ["2"]);
    assert_eq!(tars(&[(F, "1.txt", b"a"), (F, "2.txt", b"2")], &pair, "txt", None), ["a"]);
    assert_eq!(tars(&pair, &[(F, "3.txt", b"a"), (F, "3.cls", b"2")], "__key__", None), ["3"]);
}

/// `open` compares few of many files with their index. Others are compared when they are used.
#[test]
fn one_tar_of_many_gives_its_rows_or_an_error_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let padded = |files: &[Entry]| {
        let mut tar = tar(files);
        tar.resize(10_240, 0);
        tar
    };
    let before = padded(&[(F, "1.txt", b"a"), (F, "2.txt", b"b")]);
    let after = padded(&[(F, "1.txt", &[b'c'; 600]), (F, "2.txt", b"d")]);
    let paths: Vec<_> = (0..12).map(|n| file(folder.path(), &format!("{n:02}.tar"), &before)).collect();
    let mut errors = 0;
    for (n, path) in paths.iter().enumerate() {
        let open = || Rows::<(String,)>::tar(&paths).columns(["txt"]).open().unwrap();
        open();
        replace(path, &after);
        let rows = open();
        for row in 0..24 {
            match rows.get(row) {
                Ok((text,)) if row / 2 == n => assert_eq!(text, [&"c".repeat(600), "d"][row % 2]),
                Ok((text,)) => assert_eq!(text, ["a", "b"][row % 2]),
                Err(error) => {
                    let error = std::error::Error::source(&error).unwrap().to_string();
                    assert!(row / 2 == n && error.contains(path.to_str().unwrap()), "{error}");
                    assert!(error.contains(".index, and open the data set again"), "{error}");
                    errors += 1;
                }
            }
        }
        replace(path, &before);
    }
    assert!(
        (14..=20).contains(&errors),
        "{errors} errors: two for each of the 7 to 10 files that `open` does not compare"
    );
}

#[test]
fn an_index_of_dali_of_another_tar_is_not_taken() {
    let (a, b): ([Entry; 2], [Entry; 3]) =
        ([(F, "1.txt", b"a"), (F, "2.txt", b"b")], [(F, "1.txt", b"a"), (F, "2.txt", b"b"), (F, "3.txt", b"c")]);
    // It was made of `a`, and both have the first two files in the same places.
    let index = "v1.2 2\ntxt 512 1 1.txt\ntxt 1536 1 2.txt\n";
    assert_eq!(tars(&a, &b, "txt", Some(index)), ["a", "b", "c"]);
    assert_eq!(tars(&b, &a, "txt", Some(index)), ["a", "b"]);
    // Not of the second, but of the third row.
    let index = "v1.2 2\ntxt 1536 1 2.txt\ntxt 2560 1 3.txt\n";
    assert_eq!(tars(&b, &b, "txt", Some(index)), ["a", "b", "c"]);
}

/// A compressed shard, and what is left of it in a cache.
#[cfg(unix)]
#[test]
fn a_compressed_shard_of_the_same_size_and_time_is_decompressed_again() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let columns = [("x", "str", None)];
    let packed = |text: &str| {
        let shard = mds_shard(&columns, &[vec![text.into()]]);
        (snap::raw::Encoder::new().compress_vec(&shard).unwrap(), shard.len())
    };
    let read = |folder: &Path| texts(Rows::mds(folder).columns(["x"]).cache(cache.path(), 1 << 20));
    let (first, bytes) = packed("one");
    let path = file(folder.path(), "shard.00000.mds.snappy", &first);
    mds_index(folder.path(), &columns, 1, bytes, Some((first.len(), "snappy")));
    assert_eq!(read(folder.path()), ["one"]);
    replace(&path, packed("two").0);
    assert_eq!(read(folder.path()), ["two"]);
}

/// An `index.json` that was written for other columns of the same sizes.
#[test]
fn an_index_json_of_other_columns_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let columns = [("a", "int32", Some(4)), ("b", "float32", Some(4))];
    let shard = mds_shard(&columns, &[vec![vec![1; 4], vec![2; 4]]]);
    file(folder.path(), "shard.00000.mds", &shard);
    let open = |columns: &[crate::shards::Column]| {
        mds_index(folder.path(), columns, 1, shard.len(), None);
        Rows::<(f64,)>::mds(folder.path()).columns(["a"]).open().map(|rows| rows.get(0).unwrap().0)
    };
    assert_eq!(open(&columns).unwrap(), f64::from(0x0101_0101));
    let swapped = [("b", "float32", Some(4)), ("a", "int32", Some(4))];
    let error = open(&swapped).unwrap_err().to_string();
    assert!(error.contains("shard.00000.mds") && error.contains("`index.json`"), "{error}");
}
