//! Whether files open depends on their schemas, and not on their first rows.

use crate::Rows;
use burn::data::dataset::Dataset;
use parquet::{
    data_type::{ByteArray, ByteArrayType, FloatType, Int32Type},
    file::writer::SerializedFileWriter,
    schema::parser::parse_message_type,
};
use serde::Deserialize;
use std::{fs::File, path::Path, sync::Arc};

#[derive(Debug, PartialEq, Deserialize)]
struct Text {
    text: String,
}

fn texts(path: &Path, texts: &[&[u8]]) {
    let schema = Arc::new(parse_message_type("message rows { required binary text (STRING); }").unwrap());
    let mut file = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values: Vec<_> = texts.iter().map(|text| ByteArray::from(text.to_vec())).collect();
    column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
}

#[test]
fn a_first_text_that_is_not_utf8_is_an_error_of_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    texts(&path, &[b"bad\xFF", b"good", b"\xFF"]);
    let rows = Rows::<Text>::parquet(&path).open().unwrap();
    assert_eq!(rows.get(1).unwrap(), Text { text: "good".into() });
    for row in [0, 2] {
        let error = rows.get(row).unwrap_err().to_string();
        assert!(error.contains(&format!("row {row} of")) && error.contains("column `text`"), "{error}");
        assert!(error.contains("UTF-8") && !error.contains("damaged"), "{error}");
    }
    // Its bytes are there.
    let rows = Rows::<(bytes::Bytes,)>::parquet(&path).columns(["text"]).open().unwrap();
    assert_eq!(rows.get(0).unwrap().0[..], *b"bad\xFF");
}

#[derive(Debug, PartialEq, Deserialize)]
struct Meta {
    category: i32,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Row {
    meta: Option<Meta>,
}

/// A struct with a field that is not supported. Row `n` is null if there is no number.
fn structs(path: &Path, categories: &[Option<i32>]) {
    let schema = "message rows { optional group meta {
        optional group bbox (LIST) { repeated group list { optional group element (LIST) {
            repeated group list { optional float element; } } } }
        optional int32 category;
    } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let defs = |full: i16| categories.iter().map(move |it| if it.is_some() { full } else { 0 }).collect::<Vec<i16>>();
    let mut column = group.next_column().unwrap().unwrap();
    let reps = vec![0; categories.len()];
    column.typed::<FloatType>().write_batch(&[], Some(&defs(1)), Some(&reps)).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values: Vec<i32> = categories.iter().flatten().copied().collect();
    column.typed::<Int32Type>().write_batch(&values, Some(&defs(2)), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
}

#[test]
fn fields_that_are_not_asked_for_do_not_matter_where_the_first_struct_is_null_or_the_first_file_empty() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["0.parquet", "1.parquet", "2.parquet"].map(|name| folder.path().join(name));
    structs(&paths[0], &[]);
    structs(&paths[1], &[None, None, Some(5)]);
    structs(&paths[2], &[Some(6)]);
    let categories = [None, None, Some(5), Some(6)];
    for first in [0, 1] {
        let rows = Rows::<Row>::parquet(&paths[first..]).open().unwrap();
        let read: Vec<_> = (0..4).map(|row| rows.get(row).unwrap().meta.map(|meta| meta.category)).collect();
        assert_eq!(read, categories);
        let rows = Rows::<(Option<Meta>,)>::parquet(&paths[first..]).columns(["meta"]).open().unwrap();
        let read: Vec<_> = (0..4).map(|row| rows.get(row).unwrap().0.map(|meta| meta.category)).collect();
        assert_eq!(read, categories);
    }
    // An empty data set and one of nulls open too.
    assert_eq!(Rows::<Row>::parquet(&paths[0]).open().unwrap().len(), 0);
    structs(&paths[0], &[None, None]);
    assert_eq!(Rows::<Row>::parquet(&paths[0]).open().unwrap().get(1).unwrap(), Row { meta: None });
}

#[test]
fn fields_of_structs_in_structs_are_chosen_too() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Deep {
        outer: Outer,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    struct Outer {
        inner: Option<Inner>,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        x: i32,
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let schema = "message rows { required group outer {
        required int32 other;
        optional group inner { required int32 x; required int96 y; }
    } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    for defs in [None, Some([0, 1])] {
        let mut column = group.next_column().unwrap().unwrap();
        let values = [1, 2];
        let values = &values[..if defs.is_some() { 1 } else { 2 }];
        column.typed::<Int32Type>().write_batch(values, defs.as_ref().map(|defs| &defs[..]), None).unwrap();
        column.close().unwrap();
    }
    let mut column = group.next_column().unwrap().unwrap();
    let y = parquet::data_type::Int96::new();
    column.typed::<parquet::data_type::Int96Type>().write_batch(&[y], Some(&[0, 1]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
    let rows = Rows::<Deep>::parquet(&path).open().unwrap();
    assert_eq!(rows.get(0).unwrap(), Deep { outer: Outer { inner: None } });
    assert_eq!(rows.get(1).unwrap(), Deep { outer: Outer { inner: Some(Inner { x: 1 }) } });
}
