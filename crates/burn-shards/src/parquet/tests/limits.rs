//! Small files that become much are read, as far as `memory` allows.

use super::{
    made::{Made, dictionary, page, varint},
    *,
};
use crate::source::cell::Cell;
use parquet::basic::Compression;
use std::path::Path;

/// A file of one value again and again: a dictionary, and a run of its index.
fn all_one(path: &Path, schema: &str, value: &[u8], rows: u32) {
    let run = [vec![1], varint(u64::from(rows) << 1), vec![0]].concat(); // one bit, then a run of index 0
    let pages = vec![(None, dictionary(1, value)), (Some(0), page(rows, 8, run.len(), &run))];
    Made { rows: rows as usize, values: rows as usize, pages, ..Made::new(schema) }.write(path);
}

fn open_with_memory(path: &Path, memory: u64) -> ParquetSource {
    open(&[path.into()], &Selection::All, &Options { memory, ..Options::default() }).unwrap()
}

#[test]
fn nulls_and_indices_of_a_dictionary_are_not_charged_the_width_of_a_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let rows = 1 << 20;
    // Nulls alone: a run of levels, and no values.
    let run = varint(u64::from(rows) << 1);
    let levels = [(run.len() as u32 + 1).to_le_bytes().to_vec(), run, vec![0]].concat();
    let stored = zstd::bulk::compress(&levels, 3).unwrap();
    let pages = vec![(Some(0), page(rows, 0, levels.len(), &stored))];
    let codec = Compression::ZSTD(Default::default());
    let schema = "message rows { optional fixed_len_byte_array(768) x; }";
    Made { codec, rows: rows as usize, values: rows as usize, pages, ..Made::new(schema) }.write(&path);
    let source = open_with_memory(&path, 0);
    [0, 5, rows as usize - 1].iter().for_each(|row| assert_eq!(source.read(*row).unwrap()[0].1, Cell::Null));

    all_one(&path, "message rows { required fixed_len_byte_array(768) x; }", &[7; 768], rows);
    let source = open_with_memory(&path, 0);
    [0, 5, rows as usize - 1]
        .iter()
        .for_each(|row| assert_eq!(source.read(*row).unwrap()[0].1, Cell::Bytes(vec![7; 768])));

    all_one(&path, "message rows { required int64 x; }", &[0; 8], 6_000_000);
    let source = open_with_memory(&path, 0);
    assert_eq!(source.read(5_999_999).unwrap()[0].1, Cell::Int(0));
}

#[test]
fn a_limit_that_is_hit_names_the_option_that_raises_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    all_one(&path, "message rows { required int64 x; }", &[0; 8], 9_000_000);
    let error = open_with_memory(&path, 0).read(3).unwrap_err();
    assert!(matches!(error, DataError::Option { option: "memory", .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("file.parquet") && text.contains("column `x`") && text.contains("row 3"), "{text}");
    assert!(!text.contains("damaged"), "{text}");
    let (_, rest) = text.split_once("`.memory(").unwrap();
    let mib: u64 = rest.split_once(" << 20)").unwrap().0.parse().unwrap();
    assert!(mib < 100, "{text}");
    assert_eq!(open_with_memory(&path, mib << 20).read(3).unwrap()[0].1, Cell::Int(0));
}
