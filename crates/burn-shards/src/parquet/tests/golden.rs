//! Files that other programs wrote, and what they put in, as JSON.

use super::*;
use crate::{
    parquet::rows::open_with,
    source::cell::{Cell, Raw},
};
use serde_json::{Map, Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden/parquet")
}

fn manifest() -> Value {
    serde_json::from_slice(&fs::read(folder().join("manifest.json")).unwrap()).unwrap()
}

/// A cell as the manifest writes it. Bytes are hex there.
fn json_of(cell: &Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(value) => json!(value),
        Cell::Int(value) => json!(value),
        Cell::Unsigned(value) => json!(value),
        Cell::F32(value) => json!(f64::from(*value)),
        Cell::F64(value) => json!(value),
        Cell::Text(text) => json!(text),
        Cell::Bytes(bytes) => json!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        Cell::Map(pairs) => pairs.iter().map(|(key, value)| json!([json_of(key), json_of(value)])).collect(),
        Cell::Raw(bytes, Raw::Json | Raw::Number) => json!(String::from_utf8(bytes.clone()).unwrap()),
        Cell::List(cells) => cells.iter().map(json_of).collect::<Vec<_>>().into(),
        Cell::Struct(fields) => fields.iter().map(|(name, cell)| (name.to_string(), json_of(cell))).collect(),
        Cell::Numbers(kind, bytes) => {
            bytes.chunks_exact(kind.size()).map(|number| json_of(&kind.one(number).unwrap())).collect()
        }
        other => panic!("no format has {other:?}"),
    }
}

fn json_row(record: &Record) -> Value {
    record.iter().map(|(name, cell)| (name.to_string(), json_of(cell))).collect()
}

fn wanted_of(row: &Map<String, Value>) -> Selection {
    Selection::Some(row.keys().map(|name| (name.as_str().into(), Selection::All)).collect())
}

/// Whether two values are the same. JSON is read with an error in the last place of a number.
fn alike(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| alike(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len() && one.iter().all(|(name, one)| two.get(name).is_some_and(|two| alike(one, two)))
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            a == b || (a - b).abs() <= 1e-14 * a.abs()
        }
        (one, two) => one == two,
    }
}

#[test]
fn every_file_has_the_rows_that_were_written() {
    let manifest = manifest();
    let mut checked = 0;
    for file in manifest["files"].as_array().unwrap() {
        let name = file["file"].as_str().unwrap();
        let expected = manifest["rows"][file["rows"].as_str().unwrap()].as_array().unwrap();
        let wanted = expected.first().map_or(Selection::All, |row| wanted_of(row.as_object().unwrap()));
        let options = Options { index_dir: Some(tempfile::tempdir().unwrap().path().into()), ..Options::default() };
        for small in [0, u64::MAX] {
            let objects = Objects::local(vec![folder().join(name)]).unwrap();
            let source = open_with(objects, &wanted, &options, small).unwrap();
            assert_eq!(source.len(), expected.len(), "{name}");
            for pass in 0..3 {
                for row in (0..expected.len()).rev() {
                    let found = json_row(&source.read(row).unwrap_or_else(|error| panic!("{error}")));
                    let right = &expected[row];
                    assert!(alike(&found, right), "{name}, row {row}, pass {pass}: {found} is not {right}");
                    checked += 1;
                }
                source.index().unwrap();
            }
        }
    }
    assert!(checked > 3000, "{checked}");
}

#[test]
fn files_of_the_hub_are_one_data_set_and_tell_their_classes() {
    let manifest = manifest();
    let paths: Vec<_> = (0..2).map(|n| folder().join(format!("hub-0000{n}-of-00002.parquet"))).collect();
    let fields = Selection::Some(vec![("bytes".into(), Selection::All)]);
    let wanted = Selection::Some(vec![("label".into(), Selection::All), ("image".into(), fields)]);
    let source = open(&paths, &wanted, &Options::default()).unwrap();
    assert_eq!(source.len(), 10);
    assert_eq!(source.classes("label").unwrap(), ["cat", "dog", "señor ant"]);
    assert_eq!(source.classes("tags").unwrap(), ["indoor", "outdoor"]);
    assert_eq!(source.classes("caption"), None);
    for row in 0..10 {
        let expected = &manifest["rows"][format!("hub{}", row / 5)][row % 5];
        let found = source.read(row).unwrap();
        assert_eq!(found[0].0, "label".into());
        let image = expected["image"].get("bytes").map_or(Value::Null, |bytes| json!({"bytes": bytes}));
        let expected = json!({"label": expected["label"], "image": image});
        assert_eq!(json_row(&found), expected);
        let (object, place) = source.place(row);
        assert!(object.ends_with(&format!("hub-0000{}-of-00002.parquet", row / 5)) && place == row % 5);
    }
    let there_is = source.there_is();
    assert_eq!(there_is[0], ("image".into(), "struct{bytes: binary, path: string}".into()));
    assert_eq!(there_is[1], ("label".into(), "int64".into()));
}

#[test]
fn what_is_not_supported_is_refused_by_name_when_it_is_wanted() {
    let manifest = manifest();
    for file in manifest["refused"].as_array().unwrap() {
        let name = file["file"].as_str().unwrap();
        let path = [folder().join(name)];
        let source = open(&path, &Selection::All, &Options::default());
        if ["struct_in", "list_in", "list_of", "map"].iter().any(|start| name.starts_with(start)) {
            let rows: Vec<_> = rows(&source.unwrap()).unwrap().iter().map(json_row).collect();
            assert_eq!(json!(rows), file["rows"], "{name}");
            continue;
        }
        let error = source.unwrap_err();
        let Some(bad) = file["column"].as_str() else {
            assert!(error.to_string().contains("encrypted"), "{name}: {error}");
            continue;
        };
        let DataError::Unsupported { column: Some(column), .. } = &error else { panic!("{name}: {error}") };
        assert_eq!(column, bad);
        let fine = open(&path, &columns(&["id"]), &Options::default()).unwrap();
        assert_eq!(fine.read(0).unwrap()[0].1, Cell::Int(file["rows"][0]["id"].as_i64().unwrap()));
    }
}
