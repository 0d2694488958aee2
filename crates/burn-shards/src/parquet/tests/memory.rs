//! What is kept in memory, and for how long.

use super::{
    single::counting,
    written::{properties, row, write},
    *,
};
use parquet::{basic::Compression, file::properties::WriterVersion};
use std::{sync::atomic::Ordering::Relaxed, thread};

#[test]
fn the_limit_holds_while_threads_read_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 2000, 150, properties(WriterVersion::PARQUET_2_0, Compression::SNAPPY, true));
    let limit = 30_000;
    let source = open(&[path], &Selection::All, &Options { memory: limit, ..Options::default() }).unwrap();
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
fn without_memory_rows_are_the_same_and_one_piece_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 60, 60, properties(WriterVersion::PARQUET_1_0, Compression::SNAPPY, false));
    let source = open(&[path], &Selection::All, &Options { memory: 0, ..Options::default() }).unwrap();
    (0..60).for_each(|at| assert_eq!(source.read(at).unwrap(), row(at)));
    // That of the last column: 60 places, and 7 words.
    assert!((480..700).contains(&source.pieces.bytes()), "{}", source.pieces.bytes());
}

#[test]
fn a_column_that_takes_more_than_the_memory_is_decoded_once_for_its_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 180, 60, properties(WriterVersion::PARQUET_1_0, Compression::SNAPPY, false));
    let (store, objects) = counting(&path);
    let options = Options { memory: 10_000, ..Options::default() };
    let source = open_with(objects, &columns(&["image", "id"]), &options, 0).unwrap();
    store.reads.store(0, Relaxed);
    for at in 0..180 {
        assert_eq!(source.read(at).unwrap(), [1, 0].map(|column| row(at)[column].clone()));
    }
    assert_eq!(store.reads.load(Relaxed), 3 * 3, "each of three leaves of three groups");
    // Its bytes are more than 10,000, and that is told at `open`.
    let (object, bytes) = source.cramped().unwrap();
    assert!(object == 0 && bytes > 10_000, "{bytes}");
    let roomy = open(&[path], &Selection::All, &Options { memory: bytes * 2, ..Options::default() }).unwrap();
    assert_eq!(roomy.cramped(), None);
}

#[test]
fn blocks_are_row_groups_and_single_values_take_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    write(&path, 100, 40, super::written::plain(WriterVersion::PARQUET_1_0));
    let blocks = |wanted: &Selection| {
        let source = open(std::slice::from_ref(&path), wanted, &Options::default()).unwrap();
        source.blocks().unwrap().blocks
    };
    assert_eq!(blocks(&columns(&["image"])), [(40, 0), (40, 0), (20, 0)]);
    assert_eq!(blocks(&columns(&["image", "id"])), [(40, 320), (40, 320), (20, 160)]);
}
