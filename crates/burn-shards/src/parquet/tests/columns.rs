//! Columns and fields: which are wanted, which files have them, and of which types.

use super::{
    written::{image_def, plain, write},
    *,
};
use crate::source::cell::Cell;
use burn::data::dataset::Dataset;
use parquet::{
    data_type::{Int32Type, Int64Type, Int96Type},
    file::{properties::WriterVersion, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};
use std::{
    fs::{self, File},
    sync::Arc,
};

#[test]
fn only_wanted_columns_and_fields_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 50, 50, plain(WriterVersion::PARQUET_1_0));
    let image = Selection::Some(vec![("path".into(), Selection::All), ("other".into(), Selection::All)]);
    let wanted = Selection::Some(vec![
        ("word".into(), Selection::All),
        ("absent".into(), Selection::All),
        ("image".into(), image),
    ]);
    let source = open(&[path], &wanted, &Options::default()).unwrap();
    assert_eq!(source.leaves(0).len(), 2);
    let found = source.read(12).unwrap();
    assert_eq!(found[0], ("word".into(), Cell::Text("word 5".into())));
    let image = Cell::Struct(vec![("path".into(), Cell::Text("12.jpg".into()))]);
    assert_eq!(found[1..], [("image".into(), image)]);
    assert_eq!(source.there_is()[2], ("tokens".into(), "list<int32>".into()));
}

#[test]
fn files_whose_columns_have_other_types_are_no_data_set() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.parquet", "b.parquet"].map(|name| folder.path().join(name));
    write(&paths[0], 5, 5, plain(WriterVersion::PARQUET_1_0));
    let schema = Arc::new(parse_message_type("message rows { optional int64 id; optional int32 word; }").unwrap());
    let mut file = SerializedFileWriter::new(File::create(&paths[1]).unwrap(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[7], Some(&[1]), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int32Type>().write_batch(&[5], Some(&[1]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
    // One may have nulls where the other has none, and columns may be missing.
    assert!(open(&paths, &columns(&["id", "image"]), &Options::default()).is_ok());
    let error = open(&paths, &Selection::All, &Options::default()).unwrap_err();
    assert!(matches!(&error, DataError::Schema { object, .. } if object.ends_with("b.parquet")), "{error}");
    assert!(error.to_string().contains("`word` has another type") && error.to_string().contains("int32"), "{error}");
}

#[test]
fn a_column_that_only_later_files_have_is_read_from_them() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Row {
        id: i64,
        late: Option<i32>,
    }
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.parquet", "b.parquet"].map(|name| folder.path().join(name));
    write(&paths[0], 2, 2, plain(WriterVersion::PARQUET_1_0));
    let schema = Arc::new(parse_message_type("message rows { required int64 id; required int32 late; }").unwrap());
    let mut file = SerializedFileWriter::new(File::create(&paths[1]).unwrap(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[7], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int32Type>().write_batch(&[5], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
    let rows = crate::Rows::<Row>::parquet(paths).open().unwrap();
    let read: Vec<Row> = (0..3).map(|at| rows.get(at).unwrap()).collect();
    assert_eq!(read, [(0, None), (1, None), (7, Some(5))].map(|(id, late)| Row { id, late }));
}

#[test]
fn times_of_another_unit_are_another_type() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, column: &str| {
        let path = folder.path().join(name);
        let schema = Arc::new(parse_message_type(&format!("message rows {{ optional {column}; }}")).unwrap());
        SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap().close().unwrap();
        path
    };
    let millis = written("a", "int64 at (TIMESTAMP(MILLIS,true))");
    for (other, word) in [
        ("int64 at (TIMESTAMP(MICROS,true))", "timestamp[us]"),
        ("int64 at (TIMESTAMP(NANOS,true))", "timestamp[ns]"),
        ("int64 at (TIMESTAMP_MICROS)", "timestamp[us]"),
        ("int64 at (TIME(MICROS,true))", "time[us]"),
        ("int64 at", "int64"),
    ] {
        let error = open(&[millis.clone(), written("b", other)], &Selection::All, &Options::default()).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("`at` has another type") && error.contains(word), "{other}: {error}");
    }
    let same = written("c", "int64 at (TIMESTAMP_MILLIS)");
    assert!(open(&[millis, same], &Selection::All, &Options::default()).is_ok(), "an older mark means the same");
}

#[test]
fn the_schema_of_each_file_is_tried_at_open_and_no_page() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Row {
        id: i64,
        word: String,
        image: Option<Image>,
    }
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Image {
        path: Option<String>,
    }
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.parquet", "b.parquet", "c.parquet"].map(|name| folder.path().join(name));
    paths[..2].iter().for_each(|path| write(path, 5, 5, plain(WriterVersion::PARQUET_1_0)));
    // The pages of the second file are no pages.
    let mut bytes = fs::read(&paths[1]).unwrap();
    bytes[4..100].fill(0xFF);
    fs::write(&paths[1], bytes).unwrap();
    let rows = crate::Rows::<Row>::parquet(&paths[..2]).open().unwrap();
    let image = Some(Image { path: Some("1.jpg".into()) });
    assert_eq!(rows.get(1).unwrap(), Row { id: 1, word: "word 1".into(), image });
    assert!(rows.get(5).is_err());
    // The third one lacks a column.
    let schema = Arc::new(parse_message_type("message rows { required int64 id; }").unwrap());
    let mut file = SerializedFileWriter::new(File::create(&paths[2]).unwrap(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[7], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
    let error = crate::Rows::<Row>::parquet(&paths[..]).open().unwrap_err();
    assert!(matches!(&error, DataError::Schema { object, .. } if object.ends_with("c.parquet")), "{error}");
    assert!(error.to_string().contains("missing field `word`"), "{error}");
}

#[test]
fn a_field_that_is_not_supported_is_refused_only_if_it_is_asked_for() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Row<M> {
        meta: M,
    }
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Category {
        category: i32,
    }
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Boxes {
        bbox: Option<i64>,
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let schema = "message rows { optional group meta {
        optional int96 bbox;
        optional int32 category;
    } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int96Type>().write_batch(&[], Some(&[1]), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int32Type>().write_batch(&[5], Some(&[2]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
    let rows = crate::Rows::<Row<Category>>::parquet(&path).open().unwrap();
    assert_eq!(rows.get(0).unwrap(), Row { meta: Category { category: 5 } });
    let error = crate::Rows::<Row<Boxes>>::parquet(&path).open().unwrap_err();
    assert!(matches!(&error, DataError::Unsupported { column: Some(column), .. } if column == "meta"), "{error}");
    assert!(error.to_string().contains("the type int96 in its field `bbox`"), "{error}");
}

#[test]
fn a_null_struct_is_none_also_where_the_file_has_none_of_its_wanted_fields() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Row {
        image: Option<Image>,
    }
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Image {
        width: Option<u32>,
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 8, 8, plain(WriterVersion::PARQUET_1_0));
    let rows = crate::Rows::<Row>::parquet(path).optional(["image.width"]).open().unwrap();
    for at in 0..8 {
        let image = (image_def(at, false) > 0).then_some(Image { width: None });
        assert_eq!(rows.get(at).unwrap(), Row { image }, "row {at}");
    }
}
