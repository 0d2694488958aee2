//! Errors of rows name the cure.

use super::write::{Column, jsonl, parquet, tar};
use burn::data::dataset::Dataset;
use burn_shards::Rows;
use bytes::Bytes;
use serde::Deserialize;
use std::sync::{Arc, Mutex};

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only read")]
struct Row {
    txt: String,
    json: Vec<u8>,
}

#[test]
fn a_row_that_lacks_a_column_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let files: [(&str, &[u8]); 4] = [("0.txt", b"a"), ("1.txt", b"a"), ("1.json", b"[1]"), ("2.txt", b"a")];
    let path = tar(folder.path(), "a.tar", &files);
    let rows = Rows::<Row>::tar(&path).open().unwrap();
    let error = rows.get(0).unwrap_err().to_string();
    assert!(error.contains("row 0 of") && error.contains("column `json`"), "{error}");
    assert!(error.contains("lacks") && error.contains("2 of 3") && error.contains("Option"), "{error}");
    assert!(!error.contains("there is"), "{error}");
    let rows = Rows::<(String, Vec<u8>)>::tar(&path).columns(["txt", "json"]).open().unwrap();
    assert_eq!(rows.get(2).unwrap_err().to_string(), error.replace("row 0", "row 2").replace("key `0`", "key `2`"));
    // A line of JSON says how it is, without a count.
    let path = jsonl(folder.path(), &["{\"txt\": \"a\"}", "{\"txt\": \"a\", \"json\": [1]}"]);
    let error = Rows::<Row>::jsonl(path).open().unwrap().get(0).unwrap_err().to_string();
    assert!(error.contains("column `json`") && error.contains("lacks") && error.contains("Option"), "{error}");
}

#[test]
fn null_names_option() {
    let folder = tempfile::tempdir().unwrap();
    let columns = [Column::Bytes(&[b"a"], &[1, 0], &[])];
    let path = parquet(folder.path(), "a.parquet", "optional binary s (STRING);", &columns);
    let error = Rows::<(String,)>::parquet(path).columns(["s"]).open().unwrap().get(1).unwrap_err().to_string();
    assert!(error.contains("null") && error.contains("Option") && error.contains("column `s`"), "{error}");
    let path = jsonl(folder.path(), &["{\"s\": \"a\"}", "{\"s\": null}"]);
    let error = Rows::<(String,)>::jsonl(path).columns(["s"]).open().unwrap().get(1).unwrap_err().to_string();
    assert!(error.contains("null") && error.contains("Option"), "{error}");
}

#[test]
fn a_struct_in_the_place_of_bytes_names_structs() {
    let folder = tempfile::tempdir().unwrap();
    let schema = "required group image { required binary bytes; required binary path (STRING); }";
    let column = || Column::Bytes(&[b"a"], &[], &[]);
    let path = parquet(folder.path(), "a.parquet", schema, &[column(), column()]);
    let open = [
        Rows::<(Bytes,)>::parquet(&path).columns(["image"]).open().unwrap_err(),
        Rows::<(Vec<u8>,)>::parquet(&path).columns(["image"]).open().unwrap_err(),
        Rows::<(String,)>::parquet(&path).columns(["image"]).open().unwrap_err(),
    ];
    for error in open.map(|error| error.to_string()) {
        assert!(error.contains("column `image`") && error.contains("struct"), "{error}");
        assert!(error.contains("Deserialize") && error.contains("vision::Image"), "{error}");
    }
}

#[test]
fn what_runs_around_rows_is_run_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let path = jsonl(folder.path(), &["{\"x\": 1}"]);
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = |name: &'static str| {
        let told = Arc::clone(&told);
        move |make: &mut dyn FnMut()| {
            told.lock().unwrap().push(name);
            make();
        }
    };
    let rows = Rows::<(u8,)>::jsonl(path).columns(["x"]).around_rows(tell("inner")).around_rows(tell("outer"));
    let rows = rows.open().unwrap();
    told.lock().unwrap().clear();
    assert_eq!(rows.get(0).unwrap(), (1,));
    assert_eq!(*told.lock().unwrap(), ["outer", "inner"]);
}
