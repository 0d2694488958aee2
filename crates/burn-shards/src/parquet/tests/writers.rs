//! What old and odd writers do.

use super::{
    made::{Made, page_v2, plain, varint, zigzag},
    *,
};
use crate::source::cell::{Cell, Type};
use parquet::{
    basic::Compression,
    data_type::{ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType, Int32Type},
    file::{
        metadata::{ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter},
        writer::SerializedFileWriter,
    },
    schema::parser::parse_message_type,
};
use std::{
    fs::{self, File},
    path::Path,
    sync::Arc,
};

fn all(path: &Path) -> Vec<Cell> {
    let source = open(&[path.into()], &Selection::All, &Options::default()).unwrap();
    rows(&source).unwrap().into_iter().map(|mut record| record.remove(0).1).collect()
}

fn i64s(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn a_list_goes_on_in_the_next_page_of_the_second_version() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let schema = "message rows { required group x (LIST) { repeated group list { required int64 element; } } }";
    let page = |reps: &[u8], rows: u32, numbers: &[i64]| {
        // A run for each level: of repetition, then one of definition.
        let reps: Vec<u8> = reps.iter().flat_map(|rep| [2, *rep]).collect();
        let defs = [(numbers.len() as u8) << 1, 1];
        let stored = [reps.clone(), defs.to_vec(), i64s(numbers)].concat();
        page_v2(numbers.len() as u32, rows, [defs.len(), reps.len()], stored.len(), &stored, true)
    };
    // Levels of repetition, rows that begin in the page, values.
    type Split<'a> = (&'a [u8], u32, &'a [i64]);
    let pages: &[&[Split<'_>]] = &[
        &[(&[0], 1, &[11]), (&[1, 0], 1, &[12, 13])],
        &[(&[0, 1], 1, &[11, 12]), (&[0], 1, &[13])],
        &[(&[0], 1, &[11]), (&[1], 0, &[12]), (&[0], 1, &[13])],
    ];
    for pages in pages {
        for index in [false, true] {
            let pages = pages.iter().map(|(reps, rows, numbers)| (Some(0), page(reps, *rows, numbers))).collect();
            Made { rows: 2, values: 3, pages, index, ..Made::new(schema) }.write(&path);
            assert_eq!(all(&path), [vec![11i64, 12], vec![13]].map(|list| Type::I64.list(&list)));
        }
    }
}

#[test]
fn lists_of_parquet_rs_before_48_go_on_behind_a_page_of_the_offset_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let schema = "message rows { required group x (LIST) { repeated group list { required int64 element; } } }";
    let first = [&[2, 0, 2, 1][..], &i64s(&[11])].concat();
    let second = [&[2, 1, 2, 0, 4, 1][..], &i64s(&[12, 13])].concat();
    let pages = vec![
        (Some(0), page_v2(1, 1, [2, 2], first.len(), &first, true)),
        (Some(1), page_v2(2, 1, [2, 4], second.len(), &second, true)),
    ];
    let writer = "parquet-rs version 40.0.0";
    Made { rows: 2, values: 3, pages, index: true, writer, ..Made::new(schema) }.write(&path);
    assert_eq!(all(&path), [vec![11i64, 12], vec![13]].map(|list| Type::I64.list(&list)));
}

#[test]
fn decimals_without_a_fraction_are_integers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let text = |text: &str| Cell::Raw(text.into(), crate::source::cell::Raw::Number);
    // Any size of a number may be asked for as an integer or as a text.
    let numbers: Vec<(i128, Cell)> = vec![
        (0, text("0")),
        (-1, text("-1")),
        (i64::MAX.into(), text("9223372036854775807")),
        (i64::MIN.into(), text("-9223372036854775808")),
        (u64::MAX.into(), text("18446744073709551615")),
        (-(10_i128.pow(38) - 1), text("-99999999999999999999999999999999999999")),
    ];
    for (width, fixed, optional) in
        [(16, true, false), (16, true, true), (16, false, true), (17, true, true), (4, true, false)]
    {
        let numbers = &numbers[..if width == 4 { 2 } else { numbers.len() }];
        let bytes = |number: i128| {
            [&[if number < 0 { 0xFF } else { 0 }][..], &number.to_be_bytes()].concat().split_off(17 - width)
        };
        let stored = if fixed { format!("fixed_len_byte_array({width})") } else { "binary".into() };
        let precision = if width == 4 { 9 } else { 38 };
        let repeated = if optional { "optional" } else { "required" };
        let schema = format!("message rows {{ {repeated} {stored} x (DECIMAL({precision}, 0)); }}");
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        let mut file = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
        let mut group = file.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        // The last one is null.
        let defs: Vec<i16> = numbers.iter().map(|_| 1).chain([0]).collect();
        let defs = optional.then_some(&defs[..]);
        let values: Vec<ByteArray> = numbers.iter().map(|(number, _)| bytes(*number).into()).collect();
        if fixed {
            let values: Vec<_> = values.into_iter().map(FixedLenByteArray::from).collect();
            column.typed::<FixedLenByteArrayType>().write_batch(&values, defs, None).unwrap();
        } else {
            column.typed::<ByteArrayType>().write_batch(&values, defs, None).unwrap();
        }
        column.close().unwrap();
        group.close().unwrap();
        file.close().unwrap();
        let right: Vec<Cell> =
            numbers.iter().map(|(_, cell)| cell.clone()).chain(optional.then_some(Cell::Null)).collect();
        assert_eq!(all(&path), right, "{width} bytes, fixed {fixed}");
    }
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Row {
        x: i8,
    }
    use burn::data::dataset::Dataset;
    let rows = crate::Rows::<Row>::parquet(&path).open().unwrap();
    assert_eq!(rows.get(1).unwrap(), Row { x: -1 });
}

/// A file of one column of numbers, `nothing`, whose footer is changed.
fn with_footer(path: &Path, change: impl Fn(&mut ParquetMetaData), patch: impl Fn(&mut Vec<u8>)) {
    let schema = Arc::new(parse_message_type("message rows { optional int32 nothing (INT_32); }").unwrap());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int32Type>().write_batch(&[], Some(&[0, 0, 0]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let mut bytes = file.into_inner().unwrap();
    let mut meta = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(bytes.clone())).unwrap();
    change(&mut meta);
    let length = u32::from_le_bytes(*bytes[..bytes.len() - 4].last_chunk().unwrap()) as usize;
    bytes.truncate(bytes.len() - 8 - length);
    let start = bytes.len();
    ParquetMetaDataWriter::new(&mut bytes, &meta).finish().unwrap();
    let mut footer = bytes.split_off(start);
    footer.truncate(footer.len() - 8);
    patch(&mut footer);
    let length = (footer.len() as u32).to_le_bytes();
    fs::write(path, [&bytes[..], &footer, &length, b"PAR1"].concat()).unwrap();
}

/// Puts other bytes in the place of some that are there once.
fn replace(footer: &mut Vec<u8>, from: &[u8], to: &[u8]) {
    let places: Vec<_> = (0..footer.len()).filter(|at| footer[*at..].starts_with(from)).collect();
    assert_eq!(places.len(), 1, "{from:?} in {footer:?}");
    footer.splice(places[0]..places[0] + from.len(), to.iter().copied());
}

#[test]
fn columns_of_nulls_as_the_first_writers_of_arrow_marked_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    // The converted type is the field after the name: 17 becomes 24.
    with_footer(&path, |_| (), |footer| replace(footer, b"nothing\x25\x22", b"nothing\x25\x30"));
    assert_eq!(all(&path), [Cell::Null, Cell::Null, Cell::Null]);
    let source = open(&[path], &Selection::All, &Options::default()).unwrap();
    assert_eq!(source.there_is(), [("nothing".into(), "null".into())]);
}

#[test]
fn a_field_of_dremio_that_the_format_has_for_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let length = [&[0x15][..], &zigzag(123_456)].concat();
    let bloom = |meta: &mut ParquetMetaData| {
        let mut groups = meta.clone().into_builder().take_row_groups();
        let group = groups.remove(0);
        let column = group.columns()[0].clone().into_builder();
        let column = column.set_bloom_filter_offset(Some(4)).set_bloom_filter_length(Some(123_456)).build().unwrap();
        let group = group.into_builder().set_column_metadata(vec![column]).build().unwrap();
        *meta = ParquetMetaData::new(meta.file_metadata().clone(), vec![group]);
    };
    // A list of a struct instead of a number.
    with_footer(&path, bloom, |footer| replace(footer, &length, &[0x19, 0x1C, 0x15, 2, 0]));
    assert_eq!(all(&path), [Cell::Null, Cell::Null, Cell::Null]);
}

#[test]
fn a_footer_that_is_read_by_nobody_names_its_writer_and_the_cure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    // A converted type that there is not.
    with_footer(&path, |_| (), |footer| replace(footer, b"nothing\x25\x22", b"nothing\x25\x7E"));
    let error = open(&[path], &Selection::All, &Options::default()).unwrap_err();
    assert!(matches!(error, DataError::Unsupported { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("parquet-rs") && text.contains("rewrite it with pyarrow"), "{text}");
    assert!(!text.contains("damaged"), "{text}");
}

#[test]
fn pages_of_arrow_before_3_are_compressed_and_do_not_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let data = i64s(&[5; 50]);
    let codec = Compression::ZSTD(Default::default());
    for (writer, data) in [("parquet-cpp version 1.5.1-SNAPSHOT", &data), ("unknown", &data)] {
        let stored = zstd::bulk::compress(data, 3).unwrap();
        let pages = vec![(Some(0), page_v2(50, 50, [0, 0], data.len(), &stored, true))];
        Made { writer, codec, rows: 50, values: 50, pages, ..Made::new("message rows { required int64 x; }") }
            .write(&path);
        assert_eq!(all(&path), vec![Cell::Int(5); 50]);
    }
    // Compressed to the same size: only the writer tells.
    let unlike: Vec<u8> = (0..200_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let packed = |(length, again): (usize, usize)| {
        let word = [&unlike[..length], &unlike[..again], &unlike[length..]].concat();
        let data = plain(&[&word]);
        let stored = snap::raw::Encoder::new().compress_vec(&data).unwrap();
        (stored.len() == data.len()).then_some((word, stored))
    };
    let (word, stored) =
        (100..150).flat_map(|length| (4..20).map(move |again| (length, again))).find_map(packed).unwrap();
    let pages = vec![(Some(0), page_v2(1, 1, [0, 0], stored.len(), &stored, true))];
    let writer = "parquet-cpp version 1.5.1-SNAPSHOT";
    let schema = "message rows { required binary x; }";
    Made { writer, codec: Compression::SNAPPY, rows: 1, values: 1, pages, ..Made::new(schema) }.write(&path);
    assert_eq!(all(&path), [Cell::Bytes(word)]);
}

#[test]
fn a_page_of_an_old_writer_that_is_read_by_nobody_names_writer_and_cure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    // A run of two indices for three values.
    let pages =
        vec![(None, super::made::dictionary(1, &i64s(&[7]))), (Some(0), super::made::page(3, 8, 3, &[1, 4, 0]))];
    let error = |writer: &str| {
        let schema = "message rows { required int64 x; }";
        Made { writer, rows: 3, values: 3, pages: pages.clone(), ..Made::new(schema) }.write(&path);
        open(std::slice::from_ref(&path), &Selection::All, &Options::default())
            .unwrap()
            .read(0)
            .unwrap_err()
            .to_string()
    };
    for (writer, old) in [
        ("parquet-cpp version 1.5.1-SNAPSHOT", "Arrow before 3.0"),
        ("parquet-mr version 1.6.0rc3 (build d4d5a07ec9bd262ca1e93c309f1d7d4a74ebda4c)", "parquet-mr before 1.8"),
    ] {
        let text = error(writer);
        assert!(text.contains(old) && text.contains("rewrite the file with a new pyarrow"), "{text}");
        assert!(text.contains("column `x`") && !text.contains("damaged"), "{text}");
    }
    assert!(error("parquet-mr version 1.12.0 (build 1)").contains("damaged"));
}

#[test]
fn columns_of_parquet_mr_before_1_2_9_are_longer_than_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let data = i64s(&[1, 2, 3]);
    let dictionary = super::made::dictionary(3, &data);
    let indices = [vec![2], varint(3), vec![0b00_10_01_00, 0]].concat(); // two bits each, a group of eight
    let junk = vec![0xFF; 60];
    let pages = vec![(None, dictionary), (Some(0), super::made::page(3, 8, indices.len(), &indices)), (None, junk)];
    for writer in ["parquet-mr version 1.2.8", "parquet-mr"] {
        let made = Made {
            writer,
            rows: 3,
            values: 3,
            pages: pages.clone(),
            short: 60 + 14,
            ..Made::new("message rows { required int64 x; }")
        };
        made.write(&path);
        assert_eq!(all(&path), [1, 2, 3].map(Cell::Int), "{writer}");
    }
    let writer = "parquet-mr version 1.10.0";
    Made { writer, rows: 3, values: 3, pages, short: 60 + 14, ..Made::new("message rows { required int64 x; }") }
        .write(&path);
    let source = open(&[path], &Selection::All, &Options::default()).unwrap();
    assert!(source.read(0).is_err());
}
