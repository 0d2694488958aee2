//! Damaged pages are refused, in whatever order rows are read, and saved notes are checked.

use super::{
    made::{Made, page, plain},
    written::write,
    *,
};
use crate::source::cell::Cell;
use parquet::file::properties::WriterVersion;
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use std::{
    fs,
    path::Path,
    slice,
    time::{Duration, SystemTime},
};

const SCHEMA: &str = "message rows { required binary x; }";

#[test]
fn a_damaged_file_gives_the_same_rows_in_any_order_with_an_index_and_without() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let options = Options { memory: 0, index_dir: Some(folder.path().join("none")), ..Options::default() };
    let (mut files, mut starts) = (Vec::new(), Vec::new());
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        write(&path, 60, 60, super::written::plain(version));
        files.push(fs::read(&path).unwrap());
        let source = open(slice::from_ref(&path), &columns(&["image", "word"]), &options).unwrap();
        let pages = source.groups[0].chunks.iter().flat_map(|chunk| &chunk.pages);
        starts.push(pages.map(|page| page.start as usize).collect::<Vec<_>>());
    }
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (mut right, mut refused) = (0, 0);
    for round in 0..1000 {
        let mut bytes = files[round % 2].clone();
        // The headers and levels of pages are at their starts.
        for _ in 0..rng.random_range(1..4) {
            let page = starts[round % 2][rng.random_range(0..starts[round % 2].len())];
            bytes[page + rng.random_range(0..60)] = rng.random();
        }
        fs::write(&path, &bytes).unwrap();
        let open = || open(slice::from_ref(&path), &columns(&["image", "word"]), &options);
        let (Ok(forward), Ok(backward), Ok(indexed)) = (open(), open(), open()) else { continue };
        _ = indexed.index();
        let read = |source: &ParquetSource, row: usize| source.read(row).ok();
        let first: Vec<_> = (0..60).map(|row| read(&forward, row)).collect();
        for (row, first) in first.iter().enumerate().rev() {
            for source in [&forward, &backward, &indexed] {
                assert_eq!(read(source, row), *first, "round {round}, row {row}");
            }
            *(if first.is_some() { &mut right } else { &mut refused }) += 1;
        }
    }
    assert!(right > 10_000 && refused > 10_000, "{right} {refused}");
}

/// Three pages of four values, with checksums. The value of row `n` is `n`, and then as many bytes.
fn three_pages(path: &Path) {
    let values: Vec<Vec<u8>> = (0..12).map(value).collect();
    let pages = values.chunks(4).enumerate().map(|(number, values)| {
        let data = plain(&values.iter().map(Vec::as_slice).collect::<Vec<_>>());
        (Some(number as u64 * 4), page(4, 0, data.len(), &data))
    });
    Made { rows: 12, values: 12, pages: pages.collect(), index: true, ..Made::new(SCHEMA) }.write(path);
}

fn value(row: usize) -> Vec<u8> {
    vec![b'a' + row as u8; row + 1]
}

fn read(source: &ParquetSource, row: usize) -> Option<Vec<u8>> {
    match source.read(row) {
        Ok(mut record) => match record.remove(0).1 {
            Cell::Bytes(bytes) => Some(bytes),
            other => panic!("{other:?}"),
        },
        Err(error) => {
            assert!(error.to_string().contains("checksum"), "{error}");
            None
        }
    }
}

#[test]
fn rows_of_a_damaged_page_are_refused_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    three_pages(&path);
    let mut bytes = fs::read(&path).unwrap();
    let bad = bytes.windows(6).position(|six| six == value(5)).unwrap();
    bytes[bad] ^= 1;
    fs::write(&path, bytes).unwrap();
    let orders: [&[usize]; 4] = [
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
        &[5, 5, 5, 4, 11, 4, 0, 5],
        &[11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
        &[4, 7, 4, 7, 5, 6, 3, 8],
    ];
    let options = Options { memory: 0, ..Options::default() };
    for order in orders {
        for indexed in [false, true] {
            let source = open(slice::from_ref(&path), &Selection::All, &options).unwrap();
            if indexed {
                let error = source.index().unwrap_err().to_string();
                assert!(error.contains("rows from 4 on") && error.contains("checksum"), "{error}");
            }
            for row in order.iter().chain(order) {
                let right = (!(4..8).contains(row)).then(|| value(*row));
                assert_eq!(read(&source, *row), right, "row {row} of {order:?}, indexed: {indexed}");
            }
        }
    }
}

#[test]
fn an_index_of_large_values_with_checksums_reads_and_checks_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let values: Vec<Vec<u8>> = (0..4).map(|n| vec![n; 40_000]).collect();
    let data = plain(&values.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let pages = vec![(Some(0), page(4, 0, data.len(), &data))];
    Made { rows: 4, values: 4, pages, index: true, ..Made::new(SCHEMA) }.write(&path);
    let options = Options { memory: 0, ..Options::default() };
    let good = open(slice::from_ref(&path), &Selection::All, &options).unwrap();
    good.index().unwrap();
    assert_eq!(read(&good, 3).unwrap(), values[3]);
    fs::remove_file(fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).find(|it| *it != path).unwrap())
        .unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[100_000] ^= 1;
    fs::write(&path, bytes).unwrap();
    let bad = open(slice::from_ref(&path), &Selection::All, &options).unwrap();
    assert!(bad.index().unwrap_err().to_string().contains("checksum"));
    (0..4).for_each(|row| assert_eq!(read(&bad, row), None));
}

#[test]
fn saved_notes_of_another_file_of_the_same_size_and_time_are_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.parquet");
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let write = |lengths: &[usize]| {
        let values: Vec<Vec<u8>> = lengths.iter().map(|length| vec![*length as u8; *length]).collect();
        let data = plain(&values.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let rows = lengths.len();
        let pages = vec![(Some(0), page(rows as u32, 0, data.len(), &data))];
        Made { rows, values: rows, pages, index: true, ..Made::new(SCHEMA) }.write(&path);
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    };
    let options = Options { memory: 0, ..Options::default() };
    let open = || open(slice::from_ref(&path), &Selection::All, &options).unwrap();
    for (one, other) in [
        (&[10, 20, 30, 40][..], &[40, 30, 20, 10][..]),
        (&[10, 20, 30, 40], &[10, 20, 40, 30]),
        (&[10, 20, 30, 40, 50, 60, 70], &[20, 10, 30, 40, 50, 60, 70]),
    ] {
        write(one);
        open().index().unwrap();
        write(other);
        let source = open();
        for (row, length) in other.iter().enumerate() {
            assert_eq!(source.read(row).unwrap()[0].1, Cell::Bytes(vec![*length as u8; *length]), "{one:?}, {other:?}");
        }
        write(one);
        open().index().unwrap();
        // With its own file, nothing of it is made again.
        let same = open();
        assert!(same.groups[0].chunks[0].notes[0].get().is_some());
    }
}
