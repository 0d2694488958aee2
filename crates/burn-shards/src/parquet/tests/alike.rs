//! Columns of many files: each is compared with the first file that has it.

use super::*;
use crate::source::cell::Cell;
use burn::data::dataset::Dataset;
use parquet::{
    column::writer::ColumnWriter,
    data_type::ByteArray,
    file::{metadata::KeyValue, properties::WriterProperties, writer::SerializedFileWriter},
    schema::{parser::parse_message_type, types::SchemaDescriptor},
};
use std::{fs::File, sync::Arc};

/// Files of one row each.
struct Files {
    folder: tempfile::TempDir,
    paths: Vec<PathBuf>,
}

impl Files {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), paths: Vec::new() }
    }

    /// Adds a file. Each leaf has its definition level in that row, and a value if the level is the highest.
    fn add(mut self, columns: &str, defs: &[i16]) -> Self {
        let path = self.folder.path().join(format!("{}.parquet", self.paths.len()));
        let schema = Arc::new(parse_message_type(&format!("message rows {{ {columns} }}")).unwrap());
        let leaves = SchemaDescriptor::new(Arc::clone(&schema));
        let mut file = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
        let mut group = file.next_row_group().unwrap();
        for (leaf, def) in defs.iter().enumerate() {
            let is = leaves.column(leaf);
            let mut column = group.next_column().unwrap().unwrap();
            let values = usize::from(is.max_def_level() == *def);
            let (defs, reps) = ([*def], [0]);
            let reps = (is.max_rep_level() > 0).then_some(&reps[..]);
            match column.untyped() {
                ColumnWriter::Int32ColumnWriter(it) => it.write_batch(&[7][..values], Some(&defs), reps).unwrap(),
                ColumnWriter::Int64ColumnWriter(it) => it.write_batch(&[7][..values], Some(&defs), reps).unwrap(),
                ColumnWriter::ByteArrayColumnWriter(it) => {
                    it.write_batch(&[ByteArray::from("seven")][..values], Some(&defs), reps).unwrap()
                }
                _ => panic!("no such leaves here"),
            };
            column.close().unwrap();
        }
        group.close().unwrap();
        file.close().unwrap();
        self.paths.push(path);
        self
    }

    fn open(&self) -> Result<ParquetSource, DataError> {
        open(&self.paths, &Selection::All, &Options::default())
    }

    /// The error of a file, which must say all of this.
    fn refused(&self, file: &str, words: &[&str]) {
        let error = self.open().unwrap_err();
        assert!(matches!(&error, DataError::Schema { object, .. } if object.ends_with(file)), "{error}");
        words.iter().for_each(|word| assert!(error.to_string().contains(word), "{word}: {error}"));
    }
}

const X: &str = "optional int64 x;";
const MILLIS: &str = "optional int64 t (TIMESTAMP(MILLIS,true));";
const MICROS: &str = "optional int64 t (TIMESTAMP(MICROS,true));";

#[test]
fn a_column_is_compared_with_the_first_file_that_has_it() {
    let files = Files::new().add(X, &[1]).add(&format!("{X} {MILLIS}"), &[1, 1]).add(&format!("{X} {MICROS}"), &[1, 1]);
    files.refused("2.parquet", &["column `t` has another type", "1.parquet", "timestamp[us]"]);
    let files = Files::new().add(X, &[1]).add(&format!("{MILLIS} {X}"), &[1, 1]).add(&format!("{X} {MILLIS}"), &[1, 1]);
    assert_eq!(rows(&files.open().unwrap()).unwrap().len(), 3);
}

#[test]
fn fields_of_structs_too_also_in_structs() {
    let one = "optional group s { optional int64 x; }";
    let two = "optional group s { optional int64 x; optional int32 y; }";
    let bad = "optional group s { optional int64 x; optional int64 y; }";
    Files::new()
        .add(one, &[2])
        .add(two, &[2, 2])
        .add(one, &[2])
        .add(bad, &[2, 2])
        .refused("3.parquet", &["column `s.y` has another type", "1.parquet"]);
    let inner = |field: &str| format!("optional group s {{ optional group r {{ {field} }} }}");
    Files::new()
        .add(X, &[1])
        .add(&inner("optional int64 x;"), &[3])
        .add(&inner(MILLIS), &[3])
        .add(&inner(MICROS), &[3])
        .refused("3.parquet", &["column `s.r.t` has another type", "2.parquet"]);
    // A struct where others have a value.
    Files::new().add(X, &[1]).add("optional group x { optional int64 y; }", &[2]).refused("1.parquet", &["column `x`"]);
}

#[test]
fn a_column_of_nulls_has_no_type() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Row {
        x: Option<String>,
    }
    let (nulls, text) = ("optional int32 x (UNKNOWN);", "optional binary x (STRING);");
    for order in [[nulls, text, text], [text, nulls, text], [nulls, nulls, text]] {
        let files =
            order.iter().fold(Files::new(), |files, columns| files.add(columns, &[i16::from(*columns == text)]));
        let rows = crate::Rows::<Row>::parquet(&files.paths[..]).open().unwrap();
        for (row, columns) in order.iter().enumerate() {
            assert_eq!(rows.get(row).unwrap(), Row { x: (*columns == text).then(|| "seven".into()) });
        }
        let there_is = files.open().unwrap().there_is();
        assert_eq!(there_is, [("x".into(), "string".into())], "the type comes from a file that has one");
    }
    // Behind nulls the others are still compared with each other.
    Files::new()
        .add(nulls, &[0])
        .add(text, &[1])
        .add(nulls, &[0])
        .add(X, &[1])
        .refused("3.parquet", &["column `x` has another type", "1.parquet"]);
    // Of a writer that gives them a type, its statistics tell it.
    let number = "optional int64 x;";
    for order in [[number, text], [text, number]] {
        let defs = |columns: &str| i16::from(columns == text);
        let files = order.iter().fold(Files::new(), |files, columns| files.add(columns, &[defs(columns)]));
        let found = rows(&files.open().unwrap()).unwrap().into_iter().map(|mut record| record.remove(0).1);
        let right = order.map(|columns| if columns == text { Cell::Text("seven".into()) } else { Cell::Null });
        assert_eq!(found.collect::<Vec<_>>(), right);
    }
    let list = "repeated int64 x;";
    assert_eq!(rows(&Files::new().add(list, &[0]).add("repeated int32 x;", &[1]).open().unwrap()).unwrap().len(), 2);
    // Also a struct or a list may be null in a whole file.
    for (other, defs) in [("optional group x { optional int64 y; }", 2), ("repeated int64 x;", 1)] {
        let files = Files::new().add(nulls, &[0]).add(other, &[defs]).add(nulls, &[0]);
        let read = rows(&files.open().unwrap()).unwrap();
        assert_eq!((&read[0][0].1, &read[2][0].1), (&Cell::Null, &Cell::Null), "{other}");
        assert_ne!(read[1][0].1, Cell::Null, "{other}");
    }
}

#[test]
fn a_column_of_empty_lists_has_no_type() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Row<T> {
        x: Vec<T>,
    }
    let list =
        |element: &str| format!("optional group x (LIST) {{ repeated group list {{ optional {element} element; }} }}");
    let empty = "optional group x (LIST) { repeated group list { optional int32 element (UNKNOWN); } }";
    let text = "optional group x (LIST) { repeated group list { optional binary element (STRING); } }";
    for order in [[empty, text], [text, empty]] {
        let files = order
            .iter()
            .fold(Files::new(), |files, columns| files.add(columns, &[if *columns == text { 3 } else { 1 }]));
        let rows = crate::Rows::<Row<String>>::parquet(&files.paths[..]).open().unwrap();
        for (row, columns) in order.iter().enumerate() {
            let right = if *columns == text { vec!["seven".to_string()] } else { Vec::new() };
            assert_eq!(rows.get(row).unwrap(), Row { x: right });
        }
    }
    // Bytes come from a list of numbers, or from an empty one.
    let files = Files::new().add(empty, &[1]);
    let bytes = crate::Rows::<Row<u8>>::parquet(&files.paths[..]).open().unwrap();
    assert_eq!(bytes.get(0).unwrap(), Row { x: Vec::new() });
    // Nulls are elements.
    let files = Files::new().add(empty, &[2]);
    let nulls = crate::Rows::<Row<Option<f32>>>::parquet(&files.paths[..]).open().unwrap();
    assert_eq!(nulls.get(0).unwrap(), Row { x: vec![None] });
    Files::new()
        .add(empty, &[1])
        .add(&list("int64"), &[3])
        .add(&list("int32"), &[3])
        .refused("2.parquet", &["column `x` has another type", "1.parquet"]);
    Files::new().add(empty, &[1]).add(X, &[1]).refused("1.parquet", &["column `x` has another type"]);
}

#[test]
fn a_label_has_the_same_classes_in_each_file() {
    let folder = tempfile::tempdir().unwrap();
    let write = |number: usize, classes: &[&str]| {
        let path = folder.path().join(format!("{number}.parquet"));
        let schema = Arc::new(parse_message_type("message rows { optional int64 label; optional int64 x; }").unwrap());
        let json = serde_json::json!({"info": {"features": {"label": {"names": classes, "_type": "ClassLabel"}}}});
        let pair = KeyValue::new("huggingface".into(), json.to_string());
        let pairs = (!classes.is_empty()).then(|| vec![pair]);
        let properties = Arc::new(WriterProperties::builder().set_key_value_metadata(pairs).build());
        SerializedFileWriter::new(File::create(&path).unwrap(), schema, properties).unwrap().close().unwrap();
        path
    };
    let of = |lists: &[&[&str]], wanted: &[&str]| {
        let paths: Vec<_> = lists.iter().enumerate().map(|(number, classes)| write(number, classes)).collect();
        open(&paths, &columns(wanted), &Options::default()).map(|source| source.classes("label"))
    };
    let all = Some(vec!["cat".to_string(), "dog".into(), "eel".into()]);
    assert_eq!(of(&[&[], &["cat", "dog"], &["cat", "dog", "eel"], &["cat"]], &["label"]).unwrap(), all);
    let error = of(&[&[], &["cat", "dog"], &["dog", "cat"]], &["label"]).unwrap_err();
    assert!(matches!(&error, DataError::Schema { object, .. } if object.ends_with("2.parquet")), "{error}");
    let text = error.to_string();
    assert!(text.contains("`label` has other classes than in") && text.contains("1.parquet"), "{text}");
    assert!(of(&[&["cat", "dog"], &["dog", "cat"]], &["x"]).is_ok(), "nobody reads it");
}

#[test]
fn columns_of_later_files_are_listed_too() {
    let files = Files::new().add(X, &[1]).add(&format!("{X} {MILLIS}"), &[1, 1]);
    let there_is = files.open().unwrap().there_is();
    assert_eq!(there_is, [("x".into(), "int64".into()), ("t".into(), "timestamp[ms]".into())]);
}

#[test]
fn lists_of_structs_and_of_lists_are_compared_by_their_elements() {
    let structs = |field: &str| {
        format!("optional group x (LIST) {{ repeated group list {{ optional group element {{ {field} }} }} }}")
    };
    let list = "repeated group list { optional int64 element; }";
    let lists =
        format!("optional group x (LIST) {{ repeated group list {{ optional group element (LIST) {{ {list} }} }} }}");
    let empty = "optional group x (LIST) { repeated group list { optional int32 element (UNKNOWN); } }";
    let number = structs("optional int64 y;");
    Files::new()
        .add(&number, &[4])
        .add(&structs("optional int32 y;"), &[4])
        .refused("1.parquet", &["column `x.element.y` has another type", "0.parquet"]);
    Files::new().add(&number, &[4]).add(&lists, &[5]).refused("1.parquet", &["column `x.element`"]);
    for order in [[empty, &lists, &lists], [&lists, empty, &lists]] {
        let files = order
            .iter()
            .fold(Files::new(), |files, columns| files.add(columns, &[if *columns == empty { 1 } else { 5 }]));
        let read = rows(&files.open().unwrap()).unwrap().into_iter().map(|mut record| record.remove(0).1);
        let full = Cell::List(vec![crate::source::cell::Type::I64.list(&[7i64])]);
        let right = order.map(|columns| if columns == empty { Cell::List(Vec::new()) } else { full.clone() });
        assert_eq!(read.collect::<Vec<_>>(), right);
    }
    Files::new()
        .add(empty, &[1])
        .add(&number, &[4])
        .add(&lists, &[5])
        .refused("2.parquet", &["column `x", "1.parquet"]);
}
