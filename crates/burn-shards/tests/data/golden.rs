//! Files that nobody here wrote: those of the real writers, and what they told `golden/make_golden.py` is in them.

use crate::any::{Any, equal, hex};
use burn::data::dataset::Dataset;
use burn_shards::{DataError, Rows};
use bytes::Bytes;
use serde_json::Value;
use std::{fs, path::Path};

pub(crate) use burn_pinned_made::golden::golden;

fn manifest(format: &str) -> Value {
    serde_json::from_slice(&fs::read(golden(format).join("manifest.json")).unwrap()).unwrap()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

/// The rows that a manifest tells of a file.
fn told<'a>(manifest: &'a Value, file: &Value) -> &'a Vec<Value> {
    manifest["rows"][text(file, "rows")].as_array().unwrap()
}

/// Checks a column of a file, in an order in which pages are met from behind, and again when they have been seen.
fn check(rows: &Rows<(Any,)>, told: &[Value], column: &str, name: &str) {
    assert_eq!(rows.len(), told.len(), "{name}");
    for index in (0..told.len()).rev().chain(0..told.len()) {
        let Any(read) = rows.get(index).unwrap_or_else(|error| panic!("{name}: {error}")).0;
        assert!(equal(&told[index][column], &read), "{name}, {column} of {index}: {} is {read}", told[index][column]);
    }
}

#[test]
fn parquet_of_pyarrow_polars_duckdb_and_datasets() {
    let manifest = manifest("parquet");
    let index = tempfile::tempdir().unwrap();
    let mut columns = 0;
    for file in manifest["files"].as_array().unwrap() {
        let (name, told) = (text(file, "file"), told(&manifest, file));
        let path = golden("parquet").join(name);
        let open = |column: &str| Rows::<(Any,)>::parquet(&path).columns([column]).index_dir(index.path()).open();
        let Some(first) = told.first() else {
            assert_eq!(open("id").unwrap().len(), 0, "{name}");
            continue;
        };
        for column in first.as_object().unwrap().keys() {
            if column.starts_with("dec") {
                decimals(&path, column, told);
                continue;
            }
            let rows = open(column).unwrap_or_else(|error| panic!("{name}, {column}: {error}"));
            check(&rows, told, column, name);
            rows.index().unwrap();
            check(&open(column).unwrap(), told, column, name);
            columns += 1;
        }
    }
    assert!(columns > 150, "{columns}");
}

/// Checks a column of decimals, which the manifest has as texts.
fn decimals(path: &Path, column: &str, told: &[Value]) {
    let rows = Rows::<(Option<String>,)>::parquet(path).columns([column]).open().unwrap();
    let floats = Rows::<(Option<f64>,)>::parquet(path).columns([column]).open().unwrap();
    for (index, row) in told.iter().enumerate() {
        let right = row[column].as_str();
        assert_eq!(rows.get(index).unwrap().0.as_deref(), right, "{}, {column} of {index}", path.display());
        assert_eq!(floats.get(index).unwrap().0, right.map(|right| right.parse().unwrap()));
    }
    let error = Rows::<(Option<i64>,)>::parquet(path).columns([column]).open().map(drop);
    assert!(error.unwrap_err().to_string().contains("decimal("));
}

#[test]
fn parquet_that_is_not_supported_is_refused_by_name() {
    let manifest = manifest("parquet");
    for file in manifest["refused"].as_array().unwrap() {
        let name = text(file, "file");
        let path = golden("parquet").join(name);
        let open = |column: &str| Rows::<(Any,)>::parquet(&path).columns([column]).open();
        let Some(column) = file["column"].as_str() else {
            assert!(open("id").is_err(), "{name}");
            continue;
        };
        match open(column) {
            Ok(_) if name == "map.parquet" => {
                let rows = Rows::<(Option<Vec<(Any, Any)>>,)>::parquet(&path).columns([column]).open().unwrap();
                let pairs = |(key, value): (Any, Any)| Value::from(vec![key.0, value.0]);
                let read = |row| rows.get(row).unwrap().0.map(|map| map.into_iter().map(pairs).collect::<Value>());
                let read: Vec<Value> = (0..rows.len()).map(|row| read(row).unwrap_or_default()).collect();
                let told: Vec<_> = file["rows"].as_array().unwrap().iter().map(|row| row[column].clone()).collect();
                assert_eq!(read, told);
            }
            // What a reader may support must be right.
            Ok(rows) => check(&rows, file["rows"].as_array().unwrap(), column, name),
            Err(error) => {
                assert!(matches!(&error, DataError::Unsupported { .. }), "{name}: {error}");
                assert!(error.to_string().contains(column), "{name}: {error}");
            }
        }
        // The other columns of the file are as good as ever.
        let fine = text(file, "fine_column");
        check(&open(fine).unwrap(), file["rows"].as_array().unwrap(), fine, name);
    }
}

#[test]
fn the_hub_tells_the_names_of_classes() {
    let path = golden("parquet/hub-00000-of-00002.parquet");
    let rows = Rows::<(Option<usize>,)>::parquet(path).columns(["label"]).open().unwrap();
    let classes = rows.classes("label").unwrap();
    let labels: Vec<usize> = (0..rows.len()).filter_map(|index| rows.get(index).unwrap().0).collect();
    assert!(!labels.is_empty() && labels.iter().all(|label| *label < classes.len()), "{labels:?} of {classes:?}");
    assert_eq!(rows.classes("image"), None);
}

#[test]
fn tars_of_webdataset_and_of_tar() {
    let manifest = manifest("tar");
    let index = tempfile::tempdir().unwrap();
    for file in manifest["files"].as_array().unwrap() {
        let (name, told) = (text(file, "file"), told(&manifest, file));
        let path = golden("tar").join(name);
        let mut columns: Vec<&String> = told.iter().flat_map(|row| row.as_object().unwrap().keys()).collect();
        columns.sort();
        columns.dedup();
        for column in columns {
            let read: Vec<Value> = if column == "__key__" {
                let rows = Rows::<(String,)>::tar(&path).columns([&**column]).index_dir(index.path()).open().unwrap();
                (0..rows.len()).map(|row| rows.get(row).unwrap().0.into()).collect()
            } else {
                let rows = Rows::<(Option<Bytes>,)>::tar(&path).columns([&**column]).index_dir(index.path());
                let rows = rows.open().unwrap_or_else(|error| panic!("{name}, {column}: {error}"));
                let bytes = |row| rows.get(row).unwrap().0.map_or(Value::Null, |bytes| hex(&bytes).into());
                (0..rows.len()).map(bytes).collect()
            };
            let expected: Vec<Value> = told.iter().map(|row| row[&**column].clone()).collect();
            assert_eq!(read, expected, "{name}, {column}");
        }
    }
}

#[test]
fn tars_that_cannot_be_read_right_are_refused() {
    let manifest = manifest("tar");
    for file in manifest["refused"].as_array().unwrap() {
        let name = text(file, "file");
        // An index of DALI's script that is wrong is not used, and the tar is scanned.
        if let Some(idx) = file["idx"].as_str() {
            let folder = tempfile::tempdir().unwrap();
            fs::copy(golden("tar").join(name), folder.path().join("a.tar")).unwrap();
            let key = |folder: &Path| -> Vec<String> {
                let rows = Rows::<(String,)>::tar(folder.join("a.tar")).columns(["__key__"]);
                let rows = rows.index_dir(folder.join(format!("{}", folder.join("a.idx").exists()))).open().unwrap();
                (0..rows.len()).map(|row| rows.get(row).unwrap().0).collect()
            };
            let scanned = key(folder.path());
            fs::copy(golden("tar").join(idx), folder.path().join("a.idx")).unwrap();
            assert_eq!(key(folder.path()), scanned, "{name}");
        } else {
            let error = Rows::<(Option<Bytes>,)>::tar(golden("tar").join(name)).columns(["bin"]).open().unwrap_err();
            assert!(matches!(error, DataError::Unsupported { .. } | DataError::Damaged { .. }), "{name}: {error}");
        }
    }
}

#[test]
fn mds_folders_with_each_encoding_and_codec() {
    let manifest = manifest("mds");
    let cache = tempfile::tempdir().unwrap();
    for file in manifest["files"].as_array().unwrap() {
        let (name, told) = (text(file, "folder"), told(&manifest, file));
        let folder = golden("mds").join(name);
        let open = |column: &str| Rows::<(Any,)>::mds(&folder).columns([column]).cache(cache.path(), 10 << 20).open();
        let Some(first) = told.first() else {
            assert!(open("id").unwrap_err().to_string().contains("no shards"), "{name}");
            continue;
        };
        for column in first.as_object().unwrap().keys() {
            let rows = open(column).unwrap_or_else(|error| panic!("{name}, {column}: {error}"));
            check(&rows, told, column, name);
        }
    }
    let pickled = &manifest["refused"][0];
    let folder = golden("mds").join(text(pickled, "folder"));
    let error = Rows::<(Any,)>::mds(&folder).columns([text(pickled, "column")]).open().unwrap_err();
    assert!(matches!(error, DataError::Unsupported { .. }), "{error}");
    let fine = text(pickled, "fine_column");
    let rows = Rows::<(Any,)>::mds(&folder).columns([fine]).open().unwrap();
    check(&rows, pickled["rows"].as_array().unwrap(), fine, "pickled");
}

#[test]
fn json_lines_of_polars_pandas_and_python() {
    let manifest = manifest("jsonl");
    let index = tempfile::tempdir().unwrap();
    for file in manifest["files"].as_array().unwrap() {
        let (name, told) = (text(file, "file"), told(&manifest, file));
        let rows = Rows::<std::collections::HashMap<String, Any>>::jsonl(golden("jsonl").join(name));
        let rows = rows.index_dir(index.path()).open().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(rows.len(), told.len(), "{name}");
        for (row, told) in told.iter().enumerate() {
            let read: serde_json::Map<_, _> =
                rows.get(row).unwrap().into_iter().map(|(name, Any(value))| (name, value)).collect();
            assert!(equal(told, &Value::Object(read)), "{name}, row {row}: {told}");
        }
    }
    let rows =
        Rows::<(u64,)>::jsonl(golden("jsonl/broken.jsonl")).columns(["id"]).index_dir(index.path()).open().unwrap();
    assert!(rows.get(0).is_ok() && rows.get(2).is_ok());
    let error = rows.get(1).unwrap_err().to_string();
    assert!(error.contains("row 1 of") && error.contains("broken.jsonl"), "{error}");
}
