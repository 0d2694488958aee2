//! Names of files and of members of tars: which are rows, which are left out, and which are errors.

use crate::shards::{Entry, file, pax, tar, tar_with};
use burn::data::dataset::Dataset;
use burn_shards::{DataError, Rows, Tokens};
use std::collections::HashMap;

const F: u8 = b'0';

type Row = HashMap<String, bytes::Bytes>;

/// The key and the columns of each row of a tar.
fn rows_of(bytes: &[u8]) -> Result<Vec<(String, Vec<String>)>, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "a.tar", bytes);
    let (rows, keys) = (Rows::<Row>::tar(&path).open()?, Rows::<(String,)>::tar(&path).columns(["__key__"]).open()?);
    let row = |at: usize| {
        let mut names: Vec<String> = rows.get(at).unwrap().into_keys().collect();
        names.sort();
        (keys.get(at).unwrap().0, names)
    };
    Ok((0..rows.len()).map(row).collect())
}

fn one(key: &str, columns: &[&str]) -> (String, Vec<String>) {
    (key.into(), columns.iter().map(|name| (*name).into()).collect())
}

#[test]
fn hidden_files_below_a_folder_have_the_folder_as_their_key() {
    let entries: [Entry; 9] = [
        (b'5', "./", b""),
        (F, "./.hidden.jpg", b"left out"),
        (F, "./a.b/no-dot", b"left out"),
        (F, "./d.x/.hid", b"left out"),
        (F, "./d.x/e/.hid", b"1"),
        (F, "./plain/.hid.jpg", b"2"),
        (F, "plain/.hid.jpg", b"3"),
        (F, "./__m__/x.json", b"{}"),
        (F, "./end.", b"4"),
    ];
    let right = [
        one("./d.x/e/", &["hid"]),
        one("./plain/", &["hid.jpg"]),
        one("plain/", &["hid.jpg"]),
        one("./__m__/x", &["json"]),
        one("./end", &[""]),
    ];
    assert_eq!(rows_of(&tar(&entries)).unwrap(), right);
}

#[test]
fn what_macos_adds_is_what_webdataset_makes_of_it() {
    let entries: [Entry; 10] = [
        (F, "./._train", b"x"),
        (F, "train/._0001.jpg", b"x"),
        (F, "train/0001.jpg", b"1"),
        (F, "train/._0001.cls", b"x"),
        (F, "train/0001.cls", b"1"),
        (F, "train/.DS_Store", b"x"),
        (F, "__MACOSX/train/._0001.jpg", b"x"),
        (F, "._0002.jpg", b"x"),
        (F, ".DS_Store", b"x"),
        (F, "0002.jpg", b"2"),
    ];
    let right = [
        one("train/", &["_0001.jpg"]),
        one("train/0001", &["jpg"]),
        one("train/", &["_0001.cls"]),
        one("train/0001", &["cls"]),
        one("train/", &["ds_store"]),
        one("__MACOSX/train/", &["_0001.jpg"]),
        one("0002", &["jpg"]),
    ];
    assert_eq!(rows_of(&tar(&entries)).unwrap(), right);
}

#[test]
fn headers_of_other_writers_are_read() {
    // Garbage behind the NUL of a number.
    let change = |_: usize, header: &mut [u8]| header[124..136].copy_from_slice(b"00000000002\0");
    let garbage = |_: usize, header: &mut [u8]| header[124..136].copy_from_slice(b"0000002\0x9?z");
    assert_eq!(rows_of(&tar_with(&[(F, "a.jpg", b"hi")], change)).unwrap(), [one("a", &["jpg"])]);
    assert_eq!(rows_of(&tar_with(&[(F, "a.jpg", b"hi")], garbage)).unwrap(), [one("a", &["jpg"])]);
    // An empty value takes back what was said.
    for records in
        [pax(&[("path", ""), ("size", "")]), pax(&[("path", "b.png"), ("size", "1"), ("path", ""), ("size", "")])]
    {
        assert_eq!(rows_of(&tar(&[(b'x', "pax", &records), (F, "a.jpg", b"hi")])).unwrap(), [one("a", &["jpg"])]);
    }
    // Of two extended headers both count, and the first wins.
    let (path, time) = (pax(&[("path", "first.jpg")]), pax(&[("mtime", "1.0")]));
    for headers in [[&path, &time], [&time, &path]] {
        let entries: [Entry; 3] = [(b'x', "pax", headers[0]), (b'x', "pax", headers[1]), (F, "a.jpg", b"hi")];
        assert_eq!(rows_of(&tar(&entries)).unwrap(), [one("first", &["jpg"])]);
    }
    // What is between them and the file takes nothing back.
    let size = pax(&[("path", "first.jpg"), ("size", "2")]);
    let entries: [Entry; 5] =
        [(b'g', "pax", &time), (b'x', "pax", &size), (b'g', "pax", &time), (b'K', "link", b"x\0"), (F, "a.jpg", b"hi")];
    assert_eq!(rows_of(&tar(&entries)).unwrap(), [one("first", &["jpg"])]);
    let second = pax(&[("path", "second.jpg")]);
    // Of a long name too, whether the other header is of its kind or not.
    let (pax, gnu) = ((b'x', "pax", &*path), (b'L', "long", &b"first.jpg\0"[..]));
    for before in [pax, gnu] {
        for after in [(b'x', "pax", &*second), (b'L', "long", &b"second.jpg\0"[..])] {
            assert_eq!(rows_of(&tar(&[before, after, (F, "a.jpg", b"hi")])).unwrap(), [one("first", &["jpg"])]);
        }
    }
}

#[test]
fn names_with_dots_are_told_as_the_cause_of_too_many_columns() {
    let names: Vec<String> = (0..33_000).map(|n| format!("clip.{n:06}.jpg")).collect();
    let entries: Vec<Entry> = names.iter().map(|name| (F, &**name, &b""[..])).collect();
    let error = rows_of(&tar(&entries)).unwrap_err().to_string();
    for part in ["dots", "first dot", "`clip.", "clip_", "32768"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_nothing_that_a_glob_matches_is_an_error() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    file(folder.path(), "a.jsonl", "{\"x\": 1}\n");
    symlink(at("gone"), at("b.jsonl")).unwrap();
    symlink(at("a.jsonl"), at("c.jsonl")).unwrap();
    std::fs::create_dir(at("d.jsonl")).unwrap();
    let error = Rows::<(u8,)>::jsonl(at("*.jsonl")).columns(["x"]).open().unwrap_err();
    assert!(matches!(&error, DataError::Open { path, .. } if path.ends_with("b.jsonl")), "{error}");
    assert!(error.to_string().contains("link"), "{error}");
    assert_eq!(Rows::<(u8,)>::jsonl(at("[ac].jsonl")).columns(["x"]).open().unwrap().len(), 2);

    // The index of tokens that is a link to nothing is no index of another kind.
    file(folder.path(), "t.bin", [1, 0, 2, 0]);
    symlink(at("gone"), at("t.idx")).unwrap();
    let error = Tokens::open(at("t.bin")).unwrap_err().to_string();
    assert!(error.contains("t.idx"), "{error}");
}

#[test]
fn hidden_files_are_matched_by_no_glob() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.jsonl", "._a.jsonl", ".DS_Store"] {
        file(folder.path(), name, "{\"x\": 1}\n");
    }
    for glob in ["*", "*.jsonl", "**/*.jsonl", "?a.jsonl", "[.]_a.jsonl"] {
        let found = Rows::<(u8,)>::jsonl(folder.path().join(glob)).columns(["x"]).open().map_or(0, |rows| rows.len());
        assert!(found <= 1, "{glob}: {found}");
    }
}

#[test]
fn errors_of_a_tar_name_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "a.tar", tar(&[(F, "n01/0001.cls", b"1"), (F, "n01/0002.cls", b"cat")]));
    let rows = Rows::<(u8,)>::tar(&path).columns(["cls"]).open().unwrap();
    let error = rows.get(1).unwrap_err().to_string();
    assert!(error.contains("`n01/0002`") && error.contains("row 1") && error.contains("`cls`"), "{error}");
    let path = file(folder.path(), "b.tar", tar(&[(F, "n01/0001.cls", b"cat")]));
    let error = Rows::<(u8,)>::tar(&path).columns(["cls"]).open().unwrap().get(0).unwrap_err().to_string();
    assert!(error.contains("`n01/0001`"), "{error}");
}
