//! Splits, folds and other parts of rows, single columns, and functions of rows.

use crate::{
    formats::{FORMATS, Format, ROWS, Row, bytes},
    write::{Column, jsonl, mds, parquet, tar},
};
use burn::data::dataset::Dataset;
use burn_shards::{DataError, Rows};
use bytes::Bytes;
use serde::Deserialize;
use std::{collections::BTreeSet, error::Error, fs};

/// Lines with `x` from 0 on, a label that is rarely 1, and a user with some lines.
fn open(folder: &std::path::Path, rows: usize) -> Rows<(usize,)> {
    let line = |n| format!("{{\"x\": {n}, \"label\": \"{}\", \"user\": {}}}", u8::from(n % 10 == 3), n * n % 37);
    let lines: Vec<String> = (0..rows).map(line).collect();
    let path = jsonl(folder, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    Rows::<(usize,)>::jsonl(path).columns(["x"]).open().unwrap()
}

/// The numbers of all rows, read one by one.
fn numbers(rows: &Rows<(usize,)>) -> Vec<usize> {
    (0..rows.len()).map(|row| rows.get(row).unwrap().0).collect()
}

#[test]
fn a_split_has_the_rows_that_seed_and_length_say() {
    let folder = tempfile::tempdir().unwrap();
    let all = open(folder.path(), 20);
    let (rest, part) = all.split(0.25, 42).unwrap();
    // Another process, machine or release has the same ones.
    assert_eq!(numbers(&part), [2, 4, 8, 17, 19]);
    let whole: BTreeSet<usize> = numbers(&rest).into_iter().chain(numbers(&part)).collect();
    assert!(whole.into_iter().eq(0..20) && rest.len() == 15);
    assert_ne!(numbers(&all.split(0.25, 43).unwrap().1), numbers(&part));
    // Parts of parts have the places of their rows.
    let (_, half) = rest.split(0.5, 1).unwrap();
    assert_eq!(half.len(), 8);
    for row in 0..half.len() {
        assert_eq!(half.place(row).1, half.get(row).unwrap().0);
    }
    for share in [0.0, 1.0, -0.5, f64::NAN, 0.001] {
        let error = all.split(share, 1).unwrap_err();
        assert!(matches!(error, DataError::Option { option: "split", .. }), "{error}");
    }
}

#[test]
fn a_split_by_a_label_has_the_same_share_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let all = open(folder.path(), 1000);
    for (share, seed) in [(0.1, 1), (0.25, 2), (0.333, 3)] {
        let (rest, part) = all.split_by("label", share, seed).unwrap();
        assert_eq!((rest.len() + part.len(), part.len()), (1000, (1000.0 * share).round() as usize));
        let ones = part.column::<String>("label").unwrap().iter().filter(|label| *label == "1").count();
        assert!((ones as f64 - 100.0 * share).abs() <= 1.0, "{ones} of 100 for {share}");
    }
    let error = all.split_by("lable", 0.1, 1).unwrap_err().to_string();
    assert!(error.contains("lable"), "{error}");
}

#[test]
fn a_group_is_in_one_of_the_two_parts() {
    let folder = tempfile::tempdir().unwrap();
    let all = open(folder.path(), 1000);
    let users = |rows: &Rows<(usize,)>| -> BTreeSet<u64> { rows.column("user").unwrap().into_iter().collect() };
    let mut drawn = BTreeSet::new();
    for seed in 0..5 {
        let (rest, part) = all.split_groups("user", 0.2, seed).unwrap();
        assert!(users(&rest).is_disjoint(&users(&part)) && rest.len() + part.len() == 1000);
        assert!((150..250).contains(&part.len()), "{}", part.len());
        drawn.insert(users(&part));
    }
    assert_eq!(drawn.len(), 5);
    let one = all.filter(|(x,): (usize,)| Ok(x == 0)).unwrap_err();
    assert!(one.to_string().contains("columns"), "a tuple has no names: {one}");
}

#[test]
fn each_row_is_in_one_fold() {
    let folder = tempfile::tempdir().unwrap();
    let all = open(folder.path(), 103);
    let folds = all.folds(5, 7).unwrap();
    let mut seen: Vec<usize> = folds.iter().flat_map(|(_, part)| numbers(part)).collect();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..103));
    assert!(folds.iter().all(|(rest, part)| [20, 21].contains(&part.len()) && rest.len() + part.len() == 103));
    assert!(all.folds(1, 7).is_err() && all.folds(104, 7).is_err());
}

/// Beyond 65,536 rows no list is made of them.
#[test]
fn many_rows_are_split_too() {
    let (folder, len) = (tempfile::tempdir().unwrap(), 70_001);
    let all = open(folder.path(), len);
    let (rest, part) = all.split(0.25, 42).unwrap();
    assert_eq!((rest.len(), part.len()), (52_501, 17_500));
    let of_part = numbers(&part);
    assert_eq!(of_part[..5], [2, 8, 9, 10, 11], "the format has changed");
    assert!(of_part.is_sorted() && of_part.iter().filter(|number| **number < len / 2).count().abs_diff(8750) < 300);
    let mut seen = [of_part, numbers(&rest)].concat();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..len));
    assert!(numbers(&all.split(0.25, 43).unwrap().1) != numbers(&part));
    // A part of a part, and folds.
    let (_, third) = rest.split_by("label", 1.0 / 3.0, 1).unwrap();
    assert_eq!(third.len(), 17_500);
    let folds = all.folds(3, 7).unwrap();
    assert!(folds.iter().all(|(rest, part)| [23_333, 23_334].contains(&part.len()) && rest.len() + part.len() == len));
    let mut seen: Vec<usize> = folds.iter().flat_map(|(_, part)| numbers(part)).collect();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..len));
}

#[test]
fn parts_of_every_format_have_blocks_and_their_rows() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let all = format.open(folder.path()).open().unwrap();
        let (rest, part) = all.split(0.3, 5).unwrap();
        let mut labels = Vec::new();
        for rows in [&rest, &part] {
            let blocks = rows.blocks().unwrap();
            assert_eq!((blocks.samples(), blocks.len()), (rows.len(), all.blocks().unwrap().len()), "{format:?}");
            for (whole, block) in all.blocks().unwrap().ranges().zip(blocks.ranges()) {
                for row in block {
                    let label = rows.get(row).unwrap().label as usize;
                    assert!(whole.contains(&label), "{format:?}: row {label} is not of the block {whole:?}");
                }
            }
            let read = rows.column::<i64>("label").unwrap();
            assert_eq!(read.len(), rows.len());
            for (row, label) in read.iter().enumerate() {
                let one = rows.get(row).unwrap();
                assert!(one.label == *label && one.bytes == bytes(*label as usize), "{format:?}: row {row}");
            }
            labels.extend(read);
        }
        labels.sort_unstable();
        assert!(labels.into_iter().eq(0..ROWS as i64), "{format:?}");
    }
}

#[test]
fn a_filter_reads_the_fields_of_its_own_type() {
    #[derive(Deserialize)]
    struct Label {
        label: i64,
    }
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let all = format.open(folder.path()).open().unwrap();
        let odd = all.clone().filter(|row: Label| Ok(row.label % 2 == 1)).unwrap();
        assert_eq!(odd.len(), ROWS / 2, "{format:?}");
        assert_eq!(odd.get(3).unwrap().label, 7);
        let fails = |row: Label| if row.label == 130 { Err("no such label".into()) } else { Ok(true) };
        let error = all.clone().filter(fails).unwrap_err();
        let DataError::Map { row, key, source, .. } = &error else { panic!("{format:?}: {error}") };
        assert_eq!((*row, source.to_string().as_str()), (all.place(130).1, "no such label"));
        assert_eq!(key.as_deref(), (format == Format::Tar).then_some("0130"));
        // Of a part, the row is that of the file.
        let error = odd
            .filter(|row: Label| Ok(row.label.checked_sub(9).filter(|_| row.label != 21).map(|_| true).ok_or("it")?));
        assert!(matches!(error, Err(DataError::Map { row: 21, .. })), "{format:?}");
    }
}

#[test]
fn a_mapped_row_keeps_the_error_of_its_function() {
    let folder = tempfile::tempdir().unwrap();
    let rows = Format::Tar.open(folder.path()).open().unwrap();
    let mapped = rows.split(0.5, 3).unwrap().1.map(|row: Row| match row.label % 7 {
        0 => Err(std::fmt::Error.into()),
        _ => Ok(row.label * 2),
    });
    let labels = mapped.column::<i64>("label").unwrap();
    let (_, again) = mapped.split(0.5, 1).unwrap();
    assert_eq!((mapped.len(), again.len(), mapped.blocks().unwrap().samples()), (120, 60, 120));
    for (row, label) in labels.into_iter().enumerate() {
        match mapped.get(row) {
            Ok(double) => assert_eq!(double, label * 2),
            Err(error) => {
                assert_eq!(label % 7, 0);
                let error = error.source().and_then(|error| error.downcast_ref::<DataError>()).unwrap();
                let DataError::Map { key, source, .. } = error else { panic!("{error}") };
                assert!(source.is::<std::fmt::Error>() && key.as_deref() == Some(&*format!("{label:04}")));
                assert_eq!(mapped.key(row), Some(format!("{label:04}")));
            }
        }
    }
}

#[test]
fn functions_that_cannot_fail_need_no_type_of_error() {
    let folder = tempfile::tempdir().unwrap();
    let rows = open(folder.path(), 6);
    assert_eq!(rows.clone().map(|(x,)| Ok(2 * x)).get(4).unwrap(), 8);
    #[derive(Deserialize)]
    struct Label {
        label: String,
    }
    assert_eq!(rows.clone().filter(|row: Label| Ok(row.label.parse::<u8>()? == 1)).unwrap().len(), 1);
    assert_eq!(rows.map(|(x,)| Ok(u8::try_from(x)?)).get(5).unwrap(), 5);
}

#[test]
fn sizes_come_from_the_index_of_a_tar() {
    let folder = tempfile::tempdir().unwrap();
    let files: [(&str, &[u8]); 4] = [("0.wav", b"12345"), ("0.cls", b"1"), ("1.cls", b"1"), ("2.wav", b"")];
    let path = tar(folder.path(), "a.tar", &files);
    let rows = Rows::<(Option<i64>,)>::tar(&path).columns(["cls"]).open().unwrap();
    fs::remove_file(&path).unwrap(); // nothing is read any more
    assert_eq!(rows.sizes("wav").unwrap(), [5, 0, 0]);
    assert_eq!(rows.select([2, 0]).unwrap().sizes("wav").unwrap(), [5, 0]);
    assert!(rows.sizes("wave").unwrap_err().to_string().contains("no row has `wave`"));
    assert!(rows.select([3]).unwrap_err().to_string().contains("row 3 of 3"));
    let lines = open(folder.path(), 3);
    assert!(lines.sizes("x").unwrap_err().to_string().contains("`column`"));
}

#[test]
fn a_column_that_does_not_fit_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path =
        parquet(folder.path(), "a.parquet", "optional binary s (STRING);", &[Column::Bytes(&[b"a"], &[1, 0], &[])]);
    let rows = Rows::<(Option<String>,)>::parquet(path).columns(["s"]).open().unwrap();
    let error = rows.column::<i64>("s").unwrap_err();
    assert!(matches!(&error, DataError::Schema { .. }) && error.to_string().contains("`s`"), "{error}");
    let error = rows.column::<String>("s").unwrap_err().to_string();
    assert!(error.contains("row 1 of") && error.contains("column `s`") && error.contains("null"), "{error}");
    assert_eq!(rows.column::<Option<String>>("s").unwrap(), [Some("a".into()), None]);
    let text = [b"a".as_slice(), b"2"];
    let rows = Rows::<(String,)>::mds(mds(folder.path(), &[("t", "str"), ("n", "str_int")], &[&text])).columns(["t"]);
    assert_eq!(rows.open().unwrap().column::<i64>("n").unwrap(), [2]);
    let keys = tar(folder.path(), "k.tar", &[("a/0.txt", b"x"), ("a/1.txt", b"y")]);
    let rows = Rows::<(Bytes,)>::tar(keys).columns(["txt"]).open().unwrap();
    assert_eq!(rows.column::<String>("__key__").unwrap(), ["a/0", "a/1"]);
}

#[cfg(feature = "http")]
mod far {
    use super::*;
    use crate::{
        formats::{files, remote},
        server::{Fault, Files, Server},
    };

    /// Twenty megabytes of noise, so that nothing packs it.
    fn images() -> Vec<Vec<u8>> {
        let mut state = 1_u64;
        let mut byte = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..200).map(|_| (0..100_000).map(|_| byte()).collect()).collect()
    }

    #[test]
    fn a_label_among_images_reads_less_than_a_hundredth_of_the_bytes() {
        let (folder, images) = (tempfile::tempdir().unwrap(), images());
        let labels: Vec<i64> = (0..images.len() as i64).map(|n| n * n % 10).collect();
        let texts: Vec<String> = labels.iter().map(i64::to_string).collect();
        let names: Vec<[String; 2]> =
            (0..images.len()).map(|n| [format!("{n:03}.jpg"), format!("{n:03}.cls")]).collect();
        let members: Vec<(&str, &[u8])> = (0..images.len())
            .flat_map(|n| [(&*names[n][0], &*images[n]), (&*names[n][1], texts[n].as_bytes())])
            .collect();
        let columns = [
            Column::Bytes(&images.iter().map(|image| &**image).collect::<Vec<_>>(), &[], &[]),
            Column::I64(&labels, &[], &[]),
        ];
        let parquet = parquet(folder.path(), "a.parquet", "required binary jpg; required int64 cls;", &columns);
        let tar = tar(folder.path(), "a.tar", &members);
        let read =
            |path: &std::path::Path| (format!("/{}", path.file_name().unwrap().display()), fs::read(path).unwrap());
        let files: Files = [read(&parquet), read(&tar)].into();
        let server = Server::new(files.clone(), |_| Fault::None);
        let both = [
            ("/a.parquet", Rows::<(Bytes,)>::parquet(server.url("/a.parquet"))),
            ("/a.tar", Rows::<(Bytes,)>::tar(server.url("/a.tar"))),
        ];
        for (name, builder) in both {
            let rows = builder.columns(["jpg"]).index_dir(folder.path()).open().unwrap();
            let before = rows.fetched().unwrap().bytes;
            assert_eq!(rows.column::<i64>("cls").unwrap(), labels);
            let bytes = rows.fetched().unwrap().bytes - before;
            assert!(bytes * 100 < files[name].len() as u64, "{name}: {bytes} of {} bytes", files[name].len());
        }
    }

    #[test]
    fn parts_of_one_data_set_are_fetched_ahead_side_by_side() {
        for format in FORMATS {
            let (written, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let server = Server::new(files(format, written.path()), |_| Fault::None);
            let all = remote(format, &server, indices.path()).open().unwrap();
            let (rest, part) = all.split(0.5, 9).unwrap();
            let ahead = [rest.fetch_ahead(0..rest.len()), part.fetch_ahead((0..part.len()).chain([9999]))];
            let labels = [rest.column::<i64>("label").unwrap(), part.column("label").unwrap()];
            for row in 0..part.len() {
                for (rows, labels) in [(&rest, &labels[0]), (&part, &labels[1])] {
                    let read = rows.get(row).unwrap();
                    assert!(read.label == labels[row] && read.bytes == bytes(read.label as usize), "{format:?}");
                }
            }
            drop(ahead);
        }
    }

    #[test]
    fn a_part_fetches_the_bytes_of_its_own_rows() {
        let (written, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let server = Server::new(files(Format::Tar, written.path()), |_| Fault::None);
        let all = remote(Format::Tar, &server, indices.path()).open().unwrap();
        let one = all.select([150]).unwrap();
        let before = all.fetched().unwrap();
        let ahead = one.fetch_ahead(0..one.len());
        assert_eq!(one.get(0).unwrap().bytes, bytes(150));
        drop(ahead);
        let after = all.fetched().unwrap();
        assert!(after.bytes - before.bytes < 4096, "{} bytes for one row", after.bytes - before.bytes);
    }
}

/// The time is in proportion to the rows, also in one row group: their square took minutes.
#[cfg(feature = "parquet")]
#[test]
fn a_column_of_many_rows_is_read_in_one_pass() {
    let folder = tempfile::tempdir().unwrap();
    let values: Vec<i64> = (0..100_000).collect();
    let path = parquet(folder.path(), "a.parquet", "required int64 a;", &[Column::I64(&values, &[], &[])]);
    let all = Rows::<(i64,)>::parquet(path).columns(["a"]).open().unwrap();
    let since = std::time::Instant::now();
    assert_eq!(all.select(10..90_000).unwrap().column::<i64>("a").unwrap(), values[10..90_000]);
    let odd = all.select((1..100_000).step_by(2)).unwrap().column::<i64>("a").unwrap();
    assert!(odd.iter().enumerate().all(|(n, value)| *value == 2 * n as i64 + 1));
    assert!(since.elapsed() < std::time::Duration::from_secs(20), "{:?}", since.elapsed());
}
