//! What is kept in memory, and for how long.

use super::{
    written::{properties, row, write},
    *,
};
use parquet::{basic::Compression, file::properties::WriterVersion};
use std::thread;

#[test]
fn the_limit_holds_while_threads_read_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 2000, 150, properties(WriterVersion::PARQUET_2_0, Compression::SNAPPY, true));
    let limit = 30_000;
    let source = open(&[path], &Wanted::All, &Options { memory: limit, ..Options::default() }).unwrap();
    let source = &source;
    thread::scope(|scope| {
        for reader in 0..4 {
            scope.spawn(move || {
                for step in 0..3000 {
                    let at = (step * 1237 + reader * 331) % 2000;
                    assert_eq!(source.read(at).unwrap(), row(at));
                    assert!(source.pieces.bytes() <= limit);
                }
            });
        }
    });
    assert!(source.pieces.bytes() > limit / 2);
}

#[test]
fn without_memory_rows_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 60, 60, properties(WriterVersion::PARQUET_1_0, Compression::SNAPPY, false));
    let source = open(&[path], &Wanted::All, &Options { memory: 0, ..Options::default() }).unwrap();
    (0..60).for_each(|at| assert_eq!(source.read(at).unwrap(), row(at)));
    assert_eq!(source.pieces.bytes(), 0);
}

#[test]
fn blocks_are_row_groups_and_single_values_take_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 100, 40, super::written::plain(WriterVersion::PARQUET_1_0));
    let blocks = |wanted: &Wanted| {
        let source = open(std::slice::from_ref(&path), wanted, &Options::default()).unwrap();
        source.blocks().list()
    };
    assert_eq!(blocks(&columns(&["image"])), [(40, 0), (40, 0), (20, 0)]);
    assert_eq!(blocks(&columns(&["image", "id"])), [(40, 320), (40, 320), (20, 160)]);
}
