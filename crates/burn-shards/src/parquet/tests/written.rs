//! Files that the crate `parquet` writes here: each codec, version, encoding and size of page.

use super::*;
use crate::source::cell::{Cell, Type};
use parquet::{
    basic::{Compression, Encoding},
    data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type},
    file::{
        properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion},
        writer::SerializedFileWriter,
    },
    schema::parser::parse_message_type,
};
use std::{fs::File, path::Path, sync::Arc};

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

pub(super) fn image_def(row: usize, path: bool) -> i16 {
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
            Some(numbers) => Type::I32.list(&numbers),
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
                let source = open(std::slice::from_ref(&path), &Selection::All, &Options::default()).unwrap();
                assert_eq!(source.len(), 200);
                for at in (0..200).rev().chain(0..200) {
                    let found = source.read(at).unwrap_or_else(|error| panic!("{codec} {version:?} {index}: {error}"));
                    assert_eq!(found, row(at), "{codec} {version:?}, index {index}, dictionary {dictionary}");
                }
                let paged = source.groups[0].chunks[0].pages.len() > 1;
                assert_eq!(paged, index, "{codec}: pages are pieces if there is an offset index");
            }
        }
    }
}
