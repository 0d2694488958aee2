//! Numbers that do not fit their type are errors, and others are rounded.

use super::write::{Column, jsonl, list, mds, parquet, tar};
use burn::data::dataset::Dataset;
use burn_shards::{Rows, RowsBuilder};
use serde::{Deserialize, de::DeserializeOwned};
use std::fmt::Debug;

#[derive(Debug, Deserialize, PartialEq)]
struct Of<V> {
    x: V,
}

/// The first row is read, and the others are errors with this text.
fn check<T: DeserializeOwned + Debug + PartialEq + Send + Sync>(rows: RowsBuilder<T>, first: T, text: &str) {
    let rows = rows.open().unwrap();
    assert_eq!(rows.get(0).unwrap(), first);
    assert!(rows.len() > 1);
    for row in 1..rows.len() {
        let error = rows.get(row).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("column `x"), "{error}");
    }
}

#[test]
fn a_double_that_becomes_infinite_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let one = |value: &str| jsonl(folder.path(), &["{\"x\": 0.1}", &format!("{{\"x\": {value}}}")]);
    check(Rows::<Of<f32>>::jsonl(one("1e300")), Of { x: 0.1 }, "f32");
    check(Rows::<Of<Option<f32>>>::jsonl(one("-1e39")), Of { x: Some(0.1) }, "f32");
    let path = jsonl(folder.path(), &["{\"x\": [0.1, 3.4028235e38]}", "{\"x\": [0, -1e300]}"]);
    check(Rows::<Of<Vec<f32>>>::jsonl(path), Of { x: vec![0.1, f32::MAX] }, "f32");

    let schema = format!("required double x; {}", list("xs", "double"));
    let columns =
        [Column::F64(&[0.1, 1e300], &[], &[]), Column::F64(&[0.1, f64::INFINITY, 1e300], &[1; 3], &[0, 1, 0])];
    let path = parquet(folder.path(), "a.parquet", &schema, &columns);
    check(Rows::<Of<f32>>::parquet(&path), Of { x: 0.1 }, "f32");
    // What is infinite stays it.
    check(Rows::<(Vec<f32>,)>::parquet(&path).columns(["xs"]), (vec![0.1, f32::INFINITY],), "f32");

    let (good, bad) = (0.1_f64.to_le_bytes(), 1e300_f64.to_le_bytes());
    let array = |number: &[u8]| [&[66, 1 << 2, 1], number].concat();
    let (good_array, bad_array) = (array(&good), array(&bad));
    let rows: [&[&[u8]]; 2] = [&[&good, &good_array], &[&bad, &bad_array]];
    mds(folder.path(), &[("x", "float64"), ("xs", "ndarray")], &rows);
    check(Rows::<Of<f32>>::mds(folder.path()), Of { x: 0.1 }, "f32");
    check(Rows::<(Vec<f32>,)>::mds(folder.path()).columns(["xs"]), (vec![0.1],), "f32");
}

#[test]
fn a_text_that_becomes_infinite_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let many = "9".repeat(400);
    let files: [(&str, &[u8]); 4] = [("0.x", b"0.1"), ("1.x", b"1e39"), ("2.x", b"1e999"), ("3.x", many.as_bytes())];
    check(Rows::<Of<f32>>::tar(tar(folder.path(), "a.tar", &files)), Of { x: 0.1 }, "does not fit");
    let files: [(&str, &[u8]); 3] = [("0.x", b"-inf"), ("1.x", b"-1e999"), ("2.x", many.as_bytes())];
    check(Rows::<Of<f64>>::tar(tar(folder.path(), "b.tar", &files)), Of { x: f64::NEG_INFINITY }, "does not fit");
    let rows: [&[&[u8]]; 2] = [&[b"18446744073709551616"], &[many.as_bytes()]];
    mds(folder.path(), &[("x", "str_int")], &rows);
    check(Rows::<Of<f64>>::mds(folder.path()), Of { x: 18_446_744_073_709_551_616.0 }, "does not fit");
    // It is no integer of 64 bits.
    mds(folder.path(), &[("x", "str_int")], &[&[b"7"], &[b"18446744073709551616"]]);
    let error = Rows::<Of<u64>>::mds(folder.path()).open().unwrap().get(1).unwrap_err().to_string();
    assert!(error.contains("18446744073709551616") && error.contains("does not fit 64 bits"), "{error}");
}

/// As docs/rows.md says.
#[test]
fn integers_are_rounded_to_floats() {
    let folder = tempfile::tempdir().unwrap();
    let path = jsonl(folder.path(), &["{\"x\": 9007199254740993, \"y\": 16777217}"]);
    let row = Rows::<(f64, f32)>::jsonl(path).columns(["x", "y"]).open().unwrap().get(0).unwrap();
    assert_eq!(row, (9_007_199_254_740_992.0, 16_777_216.0));
}
