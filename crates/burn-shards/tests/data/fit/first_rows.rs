//! Whether a data set opens does not depend on its first row.

use super::write::{Column, file, jsonl, list, mds, parquet, tar};
use burn::data::dataset::Dataset;
use burn_shards::{Rows, RowsBuilder};
use serde::{Deserialize, de::DeserializeOwned};
use std::fmt::Debug;

#[derive(Debug, Deserialize, PartialEq)]
struct Of<V> {
    x: V,
}

/// The first row is an error of its own, and all others are these.
fn check<T: DeserializeOwned + Debug + PartialEq + Send + Sync>(rows: RowsBuilder<T>, others: &[T]) -> String {
    let rows = rows.open().unwrap();
    let error = rows.get(0).unwrap_err().to_string();
    assert!(error.contains("row 0"), "{error}");
    let read: Vec<T> = (1..rows.len()).map(|row| rows.get(row).unwrap()).collect();
    assert_eq!(read, others);
    error
}

#[test]
fn of_json_lines() {
    let folder = tempfile::tempdir().unwrap();
    let good = "{\"x\": 7}";
    for bad in [
        "nope",
        "[1]",
        "{\"x\": 1",
        "{\"x\": null}",
        "{\"x\": \"a\"}",
        "{\"x\": -1}",
        "{\"x\": [1]}",
        "{}",
        "{\"x\": 1, \"x\": 2}",
        "{\"y\": 1}",
    ] {
        check(Rows::<Of<u8>>::jsonl(jsonl(folder.path(), &[bad, good, good])), &[Of { x: 7 }, Of { x: 7 }]);
        // Also if the next rows are bad.
        let many = [&[bad; 40][..], &[good]].concat();
        let rows = Rows::<Of<u8>>::jsonl(jsonl(folder.path(), &many)).open().unwrap();
        assert!(rows.get(39).is_err() && rows.get(40).unwrap().x == 7);
        // Also in the second file.
        let two = [file(folder.path(), "a.jsonl", good), file(folder.path(), "b.jsonl", [bad, good].join("\n"))];
        let rows = Rows::<Of<u8>>::jsonl(two).open().unwrap();
        assert!(rows.get(0).is_ok() && rows.get(1).is_err() && rows.get(2).is_ok());
    }
    let path = file(folder.path(), "c.jsonl", b"{\"x\": \"a\xff\"}\n{\"x\": \"c\"}\n");
    check(Rows::<Of<String>>::jsonl(path), &[Of { x: "c".into() }]);
    let rows = Rows::<Of<u8>>::jsonl([file(folder.path(), "d.jsonl", "\n"), file(folder.path(), "e.jsonl", good)]);
    assert_eq!(rows.open().unwrap().get(0).unwrap().x, 7);
}

/// Keys that nobody asks for may be twice, or broken. They may hold anything that ends where it should.
#[test]
fn keys_that_nobody_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    let lines: [&[u8]; 8] = [
        br#"{"a": 1, "a": 2, "x": 1}"#,
        br#"{"a": 1e999, "x": 1}"#,
        br#"{"a": "\ud800", "x": 1}"#,
        br#"{"\ud800": 1, "x": 1}"#,
        b"{\"a\": \"\xff\", \"x\": 1}",
        b"{\"\xff\": 1, \"x\": 1}",
        br#"{"a": {"b": 1, "b": 2}, "x": 1}"#,
        br#"{"x": 1, "a": [{"b": 1, "b": 2}]}"#,
    ];
    for line in lines {
        let rows = Rows::<Of<u8>>::jsonl(file(folder.path(), "a.jsonl", line)).open().unwrap();
        assert_eq!(rows.get(0).unwrap(), Of { x: 1 }, "{}", String::from_utf8_lossy(line));
    }
    // Inside of objects too. Of those that are asked for, one alone may be there.
    let path = jsonl(folder.path(), &[r#"{"x": {"a": 1, "a": 2, "x": 1}}"#, r#"{"x": {"x": 1, "x": 1}}"#]);
    let rows = Rows::<Of<Of<u8>>>::jsonl(&path).open().unwrap();
    assert_eq!(rows.get(0).unwrap(), Of { x: Of { x: 1 } });
    assert!(rows.get(1).is_err());
    let rows = Rows::<Of<std::collections::HashMap<String, u8>>>::jsonl(path).open().unwrap();
    let error = rows.get(0).unwrap_err().to_string();
    assert!(error.contains("`a` is there twice") && error.contains("column `x`"), "{error}");
}

#[test]
fn of_tars() {
    let folder = tempfile::tempdir().unwrap();
    let path = tar(folder.path(), "a.tar", &[("0.cls", b"x"), ("0.txt", b"a"), ("1.cls", b"1"), ("1.txt", b"b")]);
    check(Rows::<(u8, String)>::tar(path).columns(["cls", "txt"]), &[(1, "b".into())]);
    let path = tar(folder.path(), "b.tar", &[("0.txt", b"a\xff"), ("1.txt", b"b"), ("1.cls", b"1")]);
    check(Rows::<(String,)>::tar(&path).columns(["txt"]), &[("b".into(),)]);
    check(Rows::<(u8,)>::tar(&path).columns(["cls"]), &[(1,)]);
    let path = tar(folder.path(), "c.tar", &[("0.json", b"{"), ("1.json", b"{\"x\": 1}")]);
    check(Rows::<(Of<u8>,)>::tar(path).columns(["json"]), &[(Of { x: 1 },)]);
}

#[test]
fn of_mds() {
    let folder = tempfile::tempdir().unwrap();
    let rows: [&[&[u8]]; 2] = [&[b"a\xff", b"nope"], &[b"b", b"[1]"]];
    mds(folder.path(), &[("text", "str"), ("json", "json")], &rows);
    check(Rows::<(String,)>::mds(folder.path()).columns(["text"]), &[("b".into(),)]);
    check(Rows::<(Vec<u8>,)>::mds(folder.path()).columns(["json"]), &[(vec![1],)]);
}

#[test]
fn of_parquet() {
    let folder = tempfile::tempdir().unwrap();
    #[derive(Debug, Deserialize, PartialEq)]
    struct Meta {
        n: i64,
    }
    // `bad` is of no type that can be read, and nobody asks for it.
    let schema = format!(
        "required binary s (STRING); optional int64 n; optional group meta {{
            optional group bad (LIST) {{ repeated group list {{ optional group element (LIST) {{
                repeated group list {{ optional float element; }} }} }} }}
            optional int64 n; }} {}",
        list("xs", "double")
    );
    let columns = [
        Column::Bytes(&[b"bad\xff", b"c"], &[], &[]),
        Column::I64(&[5], &[0, 1], &[]),
        Column::F32(&[], &[0, 1], &[0, 0]),
        Column::I64(&[6], &[0, 2], &[]),
        Column::F64(&[1.0, 2.0, 3.0], &[1; 3], &[0, 0, 1]),
    ];
    let path = parquet(folder.path(), "b.parquet", &schema, &columns);
    let open = || [path.clone()];
    check(Rows::<(String,)>::parquet(open()).columns(["s"]), &[("c".into(),)]);
    check(Rows::<(i64,)>::parquet(open()).columns(["n"]), &[(5,)]);
    check(Rows::<(Meta,)>::parquet(open()).columns(["meta"]), &[(Meta { n: 6 },)]);
    check(Rows::<([f64; 2],)>::parquet(open()).columns(["xs"]), &[([2.0, 3.0],)]);
    // Also behind a file without rows, and behind a value that stops the row.
    let empty = parquet(folder.path(), "a.parquet", &schema, &[]);
    let rows = Rows::<(String, Option<Meta>)>::parquet([&empty, &path]).columns(["s", "meta"]).open().unwrap();
    assert!(rows.get(0).is_err());
    assert_eq!(rows.get(1).unwrap(), ("c".into(), Some(Meta { n: 6 })));
    // Also if only a later file has the struct.
    let without = parquet(folder.path(), "0.parquet", "required int64 n;", &[Column::I64(&[1], &[], &[])]);
    let rows = Rows::<(i64, Option<Meta>)>::parquet([&without, &path]).columns(["n", "meta"]).open().unwrap();
    assert_eq!((rows.get(0).unwrap(), rows.get(2).unwrap()), ((1, None), (5, Some(Meta { n: 6 }))));
}

/// A line is a row only if it is an object, and a word of Python's is none.
#[test]
fn a_word_alone_is_no_row() {
    let folder = tempfile::tempdir().unwrap();
    for word in ["NaN", "-Infinity"] {
        let rows = Rows::<Of<Option<f32>>>::jsonl(jsonl(folder.path(), &["{\"x\": 1}", word])).open().unwrap();
        assert!(rows.get(0).is_ok() && rows.get(1).unwrap_err().to_string().contains("object"));
    }
}

/// One shard of several lacks a column: `open` tells it, whatever other columns there are.
#[test]
fn a_shard_that_lacks_a_column_is_told() {
    let folder = tempfile::tempdir().unwrap();
    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only read")]
    struct Row {
        jpg: bytes::Bytes,
        cls: i64,
        txt: String,
    }
    let all: [(&str, &[u8]); 3] = [("1.jpg", b"x"), ("1.cls", b"1"), ("1.txt", b"a")];
    let shards = [tar(folder.path(), "a.tar", &all), tar(folder.path(), "b.tar", &all[1..])];
    let error = Rows::<Row>::tar(shards).open().unwrap_err().to_string();
    assert!(error.contains("jpg") && error.contains("b.tar"), "{error}");
}

/// Before a row is read, types are tried with values that are made up.
#[test]
fn a_type_that_panics_at_a_made_up_value_is_opened() {
    fn first<'de, D: serde::Deserializer<'de>>(value: D) -> Result<char, D::Error> {
        Ok(String::deserialize(value)?.chars().next().expect("no text is empty"))
    }
    #[derive(Deserialize)]
    struct Row {
        #[serde(deserialize_with = "first")]
        x: char,
    }
    let folder = tempfile::tempdir().unwrap();
    let rows = Rows::<Row>::mds(mds(folder.path(), &[("x", "str")], &[&[b"abc"]])).open().unwrap();
    assert_eq!(rows.get(0).unwrap().x, 'a');
}

#[test]
fn a_parquet_file_without_rows_has_no_types() {
    let folder = tempfile::tempdir().unwrap();
    let some = parquet(folder.path(), "some.parquet", "required int64 x;", &[Column::I64(&[7], &[], &[])]);
    let schemas = [
        "required double x;".to_string(),
        "optional binary x (STRING);".into(),
        "optional int32 x (UNKNOWN);".into(),
        "optional int64 y;".into(),
        list("x", "int32"),
    ];
    for schema in schemas {
        let empty = parquet(folder.path(), "empty.parquet", &schema, &[]);
        for paths in [[&empty, &some], [&some, &empty]] {
            let rows = Rows::<Of<i64>>::parquet(paths).open();
            assert!(rows.as_ref().is_ok_and(|rows| rows.len() == 1), "{schema} {rows:?}");
            assert_eq!(rows.unwrap().get(0).unwrap(), Of { x: 7 });
            assert_eq!(
                Rows::<(Option<i64>,)>::parquet(paths).columns(["x"]).open().unwrap().get(0).unwrap(),
                (Some(7),)
            );
            let error = Rows::<Of<String>>::parquet(paths).open().unwrap_err().to_string();
            assert!(error.contains("some.parquet") && error.contains("int64, expected a string"), "{error}");
        }
    }
    // If no file has rows, their types are all that is known.
    let empty = parquet(folder.path(), "empty.parquet", "required double x;", &[]);
    assert!(Rows::<Of<String>>::parquet(&empty).open().unwrap_err().to_string().contains("float64, expected a string"));
    assert_eq!(Rows::<Of<f64>>::parquet(&empty).open().unwrap().len(), 0);
}

#[test]
fn a_parquet_column_of_nulls_tells_nothing_of_its_fields() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Part {
        a: i64,
    }
    let folder = tempfile::tempdir().unwrap();
    let schema = "required group x { required int64 a; required int64 other (DECIMAL(10, 2)); }";
    let columns = [Column::I64(&[7], &[], &[]), Column::I64(&[1], &[], &[])];
    let some = parquet(folder.path(), "some.parquet", schema, &columns);
    let nulls = Column::Bytes(&[], &[0], &[]);
    let nulls = parquet(folder.path(), "nulls.parquet", "optional binary x (UNKNOWN);", &[nulls]);
    for (paths, row) in [([&nulls, &some], 1), ([&some, &nulls], 0)] {
        let rows = Rows::<(Option<Part>,)>::parquet(paths).columns(["x"]).open().unwrap();
        assert_eq!(rows.get(row).unwrap(), (Some(Part { a: 7 }),));
        assert_eq!(rows.get(1 - row).unwrap(), (None,));
        let error = Rows::<(Part,)>::parquet(paths).columns(["x"]).open().unwrap_err().to_string();
        assert!(error.contains("nulls.parquet") && error.contains("null, expected struct Part"), "{error}");
    }
}
