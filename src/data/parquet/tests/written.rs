//! Files that the crate `parquet` writes here: each codec, version, encoding and size of page.

use super::*;
use crate::data::cell::{Cell, Numbers};
use burn::data::dataset::Dataset;
use parquet::{
    basic::{Compression, Encoding},
    data_type::{ByteArray, ByteArrayType, FloatType, Int32Type, Int64Type},
    file::{
        properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion},
        writer::SerializedFileWriter,
    },
    schema::parser::parse_message_type,
};
use std::{
    fs::{self, File},
    path::Path,
    sync::Arc,
};

const SCHEMA: &str = "message rows {
    required int64 id;
    optional group image { optional binary bytes; optional binary path (STRING); }
    optional group tokens (LIST) { repeated group list { optional int32 element; } }
    required binary word (STRING);
}";

/// A file of rows `0..rows`, in groups of `group`.
pub(super) fn write(path: &Path, rows: usize, group: usize, properties: WriterPropertiesBuilder) {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let properties = Arc::new(properties.build());
    let mut file = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
    for first in (0..rows).step_by(group) {
        let rows = first..(first + group).min(rows);
        let mut group = file.next_row_group().unwrap();

        let ids: Vec<i64> = rows.clone().map(|row| row as i64).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&ids, None, None).unwrap();
        column.close().unwrap();

        for text in [false, true] {
            let (mut values, mut defs) = (Vec::new(), Vec::new());
            for row in rows.clone() {
                defs.push(image_def(row, text));
                if image_def(row, text) == 2 {
                    values.push(ByteArray::from(if text { path_of(row).into() } else { bytes_of(row) }));
                }
            }
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<ByteArrayType>().write_batch(&values, Some(&defs), None).unwrap();
            column.close().unwrap();
        }

        let (mut values, mut defs, mut reps) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows.clone() {
            match tokens_of(row) {
                None => (defs.push(0), reps.push(0)),
                Some(tokens) if tokens.is_empty() => (defs.push(1), reps.push(0)),
                Some(tokens) => {
                    for (at, token) in tokens.iter().enumerate() {
                        defs.push(if token.is_some() { 3 } else { 2 });
                        reps.push(i16::from(at > 0));
                        values.extend(*token);
                    }
                    ((), ())
                }
            };
        }
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&values, Some(&defs), Some(&reps)).unwrap();
        column.close().unwrap();

        let words: Vec<_> = rows.map(|row| ByteArray::from(format!("word {}", row % 7).into_bytes())).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&words, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    file.close().unwrap();
}

fn image_def(row: usize, path: bool) -> i16 {
    match row % 11 {
        3 => 0,
        5 if path => 1,
        7 if !path => 1,
        _ => 2,
    }
}

fn bytes_of(row: usize) -> Vec<u8> {
    (0..row * 37 % 501).map(|at| (row * 31 + at) as u8).collect()
}

fn path_of(row: usize) -> String {
    format!("{row}.jpg")
}

fn tokens_of(row: usize) -> Option<Vec<Option<i32>>> {
    let token = |at: usize| (!(row % 5 == 1 && at == 2)).then_some((row * 1000 + at) as i32);
    (row % 6 != 4).then(|| (0..row % 9).map(token).collect())
}

/// What a row must be.
pub(super) fn row(row: usize) -> Record {
    let field = |path, cell| if image_def(row, path) == 2 { cell } else { Cell::Null };
    let image = match image_def(row, false) {
        0 => Cell::Null,
        _ => Cell::Struct(vec![
            ("bytes".into(), field(false, Cell::Bytes(bytes_of(row)))),
            ("path".into(), field(true, Cell::Text(path_of(row)))),
        ]),
    };
    let tokens = match tokens_of(row) {
        None => Cell::Null,
        Some(tokens) => match tokens.iter().copied().collect::<Option<Vec<i32>>>() {
            Some(numbers) => Cell::Numbers(Numbers::I32(numbers)),
            None => Cell::List(
                tokens.iter().map(|token| token.map_or(Cell::Null, |token| Cell::Int(token.into()))).collect(),
            ),
        },
    };
    vec![
        ("id".into(), Cell::Int(row as i64)),
        ("image".into(), image),
        ("tokens".into(), tokens),
        ("word".into(), Cell::Text(format!("word {}", row % 7))),
    ]
}

/// Small pages, with an offset index or without.
pub(super) fn properties(version: WriterVersion, codec: Compression, index: bool) -> WriterPropertiesBuilder {
    let statistics = if index { EnabledStatistics::Page } else { EnabledStatistics::Chunk };
    WriterProperties::builder()
        .set_writer_version(version)
        .set_compression(codec)
        .set_statistics_enabled(statistics)
        .set_offset_index_disabled(!index)
        .set_data_page_size_limit(1500)
        .set_data_page_row_count_limit(23)
        .set_write_batch_size(8)
}

/// Uncompressed PLAIN pages with an offset index.
pub(super) fn plain(version: WriterVersion) -> WriterPropertiesBuilder {
    properties(version, Compression::UNCOMPRESSED, true).set_dictionary_enabled(false).set_encoding(Encoding::PLAIN)
}

#[test]
fn each_codec_version_encoding_and_size_of_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
    ];
    for codec in codecs {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for (index, dictionary) in [(false, false), (false, true), (true, false), (true, true)] {
                let properties = properties(version, codec, index).set_dictionary_enabled(dictionary);
                write(&path, 200, 90, properties);
                let source = open(std::slice::from_ref(&path), &Wanted::All, &Options::default()).unwrap();
                assert_eq!(source.len(), 200);
                for at in (0..200).rev().chain(0..200) {
                    let found = source.read(at).unwrap_or_else(|error| panic!("{codec} {version:?} {index}: {error}"));
                    assert_eq!(found, row(at), "{codec} {version:?}, index {index}, dictionary {dictionary}");
                }
                let paged = source.groups[0].group.chunks[0].pages.len() > 1;
                assert_eq!(paged, index, "{codec}: pages are pieces if there is an offset index");
            }
        }
    }
}

#[test]
fn only_wanted_columns_and_fields_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 50, 50, plain(WriterVersion::PARQUET_1_0));
    let image = Wanted::Some(vec![("path".into(), Wanted::All), ("other".into(), Wanted::All)]);
    let wanted =
        Wanted::Some(vec![("word".into(), Wanted::All), ("absent".into(), Wanted::All), ("image".into(), image)]);
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
    let file = File::create(&paths[1]).unwrap();
    SerializedFileWriter::new(file, schema, Arc::default()).unwrap().close().unwrap();
    // One may have nulls where the other has none, and columns may be missing.
    assert!(open(&paths, &columns(&["id", "image"]), &Options::default()).is_ok());
    let error = open(&paths, &Wanted::All, &Options::default()).unwrap_err();
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
    let rows = crate::data::Rows::<Row>::parquet(paths).open().unwrap();
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
        let error = open(&[millis.clone(), written("b", other)], &Wanted::All, &Options::default()).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("`at` has another type") && error.contains(word), "{other}: {error}");
    }
    let same = written("c", "int64 at (TIMESTAMP_MILLIS)");
    assert!(open(&[millis, same], &Wanted::All, &Options::default()).is_ok(), "an older mark means the same");
}

#[test]
fn only_files_with_other_columns_are_tried_at_open() {
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
    let rows = crate::data::Rows::<Row>::parquet(&paths[..2]).open().unwrap();
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
    let error = crate::data::Rows::<Row>::parquet(&paths[..]).open().unwrap_err();
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
        bbox: Option<Vec<Vec<f32>>>,
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let schema = "message rows { optional group meta {
        optional group bbox (LIST) { repeated group list { optional group element (LIST) {
            repeated group list { optional float element; } } } }
        optional int32 category;
    } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<FloatType>().write_batch(&[], Some(&[1]), Some(&[0])).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int32Type>().write_batch(&[5], Some(&[2]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
    let rows = crate::data::Rows::<Row<Category>>::parquet(&path).open().unwrap();
    assert_eq!(rows.get(0).unwrap(), Row { meta: Category { category: 5 } });
    let error = crate::data::Rows::<Row<Boxes>>::parquet(&path).open().unwrap_err();
    assert!(matches!(&error, DataError::Unsupported { column: Some(column), .. } if column == "meta"), "{error}");
    assert!(error.to_string().contains("the type list<list<float32>> in its field `bbox`"), "{error}");
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
    let rows = crate::data::Rows::<Row>::parquet(path).open().unwrap();
    for at in 0..8 {
        let image = (image_def(at, false) > 0).then_some(Image { width: None });
        assert_eq!(rows.get(at).unwrap(), Row { image }, "row {at}");
    }
}
