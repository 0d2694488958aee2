//! Tars by the crate `tar` and by hand, whole and damaged.

#[cfg(target_os = "linux")]
mod many;

use super::open;
use crate::{
    DataError, Rows,
    source::{
        Selection, Source,
        cell::{Cell, Raw, Record},
    },
    store::{Objects, options::Options},
};
use burn::data::dataset::Dataset;
use bytes::Bytes;
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use serde::Deserialize;
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

fn write(path: &Path, files: &[(&str, &[u8])]) {
    let mut tar = tar::Builder::new(File::create(path).unwrap());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, *bytes).unwrap(); // long names by GNU's extension
    }
    tar.finish().unwrap();
}

fn shard(folder: &Path, name: &str, files: &[(&str, &[u8])]) -> PathBuf {
    let path = folder.join(name);
    write(&path, files);
    path
}

#[derive(Debug, Deserialize, PartialEq)]
struct Row {
    jpg: Bytes,
    cls: usize,
    json: Option<Meta>,
    __key__: String,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Meta {
    width: u32,
}

fn row(jpg: &'static [u8], cls: usize, json: Option<Meta>, key: &str) -> Row {
    Row { jpg: Bytes::from_static(jpg), cls, json, __key__: key.into() }
}

#[test]
fn neighbours_with_one_key_are_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!("{}/0003", "deep".repeat(40));
    let first = shard(
        folder.path(),
        "a-0.tar",
        &[
            ("__info__", b"skipped"),
            ("0001.JPG", b"one"),
            ("0001.cls", b"7\n"),
            ("readme", b"skipped"),
            ("0002.cls", b"8"),
            ("0002.json", br#"{"width": 3, "height": 4}"#),
            ("0002.jpg", b""),
        ],
    );
    let second = shard(folder.path(), "a-1.tar", &[(&format!("{long}.jpg"), b"three"), (&format!("{long}.cls"), b"9")]);
    let rows = Rows::<Row>::tar(folder.path().join("a-{0..1}.tar")).open().unwrap();
    let all: Vec<Row> = (0..rows.len()).map(|index| rows.get(index).unwrap()).collect();
    let expected =
        [row(b"one", 7, None, "0001"), row(b"", 8, Some(Meta { width: 3 }), "0002"), row(b"three", 9, None, &long)];
    assert_eq!(all, expected);
    assert_eq!(rows.place(1), (first.to_str().unwrap(), 1));
    assert_eq!(rows.place(2), (second.to_str().unwrap(), 0));

    // Only what a row type wants is read, and the second time the index is at hand.
    let pairs = Rows::<(u8, String)>::tar([&first, &second]).columns(["cls", "__url__"]).open().unwrap();
    assert_eq!(pairs.get(2).unwrap(), (9, second.to_str().unwrap().into()));
}

#[test]
fn what_a_tar_does_not_have_is_told_with_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = shard(folder.path(), "a.tar", &[("1.png", b"x"), ("1.cls", b"cat")]);
    let error = Rows::<(u8,)>::tar(&path).columns(["cls"]).open().unwrap().get(0).unwrap_err().to_string();
    assert!(error.contains("column `cls`: \"cat\" is no number"), "{error}");
    let error = Rows::<(Bytes, String)>::tar(&path).columns(["jpg", "cls"]).open().unwrap_err().to_string();
    assert!(error.contains("column `jpg`") && error.contains("`png` (bytes), `cls` (number)"), "{error}");
    assert!(Rows::<(Bytes, String)>::tar(&path).columns(["png"]).open().unwrap_err().to_string().contains("1 columns"));
    assert!(Rows::<(Bytes, String)>::tar(&path).open().unwrap_err().to_string().contains(".columns("));
}

#[test]
fn sparse_files_and_repeated_names_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = shard(folder.path(), "twice.tar", &[("1.png", b"x"), ("1.PNG", b"y")]);
    let error = Rows::<(Bytes,)>::tar(path).columns(["png"]).open().unwrap_err();
    assert!(matches!(&error, DataError::Damaged { problem, .. } if problem.contains("two files")), "{error}");
    let path = shard(folder.path(), "sparse.tar", &[("1.png", b"x")]);
    let mut bytes = fs::read(&path).unwrap();
    bytes[156] = b'S';
    let sum: u64 = (0..512).map(|at| u64::from(if (148..156).contains(&at) { b' ' } else { bytes[at] })).sum();
    bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    fs::write(&path, bytes).unwrap();
    let error = Rows::<(Bytes,)>::tar(path).columns(["png"]).open().unwrap_err();
    assert!(matches!(&error, DataError::Unsupported { .. }), "{error}");
}

#[test]
fn an_index_of_dali_is_taken_if_it_fits() {
    let folder = tempfile::tempdir().unwrap();
    let files = [("1.cls", &b"1"[..]), ("2.jpg", b"two"), ("2.cls", b"2"), ("3.jpg", b"three"), ("3.cls", b"3")];
    let path = shard(folder.path(), "a.tar", &files);
    let cls = |path: &Path| -> Result<Vec<u8>, DataError> {
        let _ = fs::remove_dir_all(folder.path().join("index"));
        let open = || Rows::<(u8,)>::tar(path).columns(["cls"]).index_dir(folder.path().join("index")).open();
        let (rows, again) = (open()?, open()?);
        assert_eq!(rows.len(), again.len(), "as it was saved");
        Ok((0..rows.len()).map(|row| rows.get(row).unwrap().0).collect())
    };
    // It leaves a sample out. So it can be told which index was taken.
    fs::write(folder.path().join("a.idx"), "v1.2 2\ncls 512 1 1.cls\njpg 3584 5 3.jpg cls 4608 1 3.cls\n").unwrap();
    assert_eq!(cls(&path).unwrap(), [1, 3]);
    for wrong in [
        "v1.1 2\ncls 512 1\njpg 3584 5 cls 4608 1\n",
        "v1.2 3\ncls 512 1 1.cls\njpg 3584 5 3.jpg cls 4608 1 3.cls\n",
        "v1.2 2\ncls 512 1 1.cls\njpg 3585 5 3.jpg cls 4608 1 3.cls\n",
        "v1.2 2\ncls 512 1 1.cls\njpg 3584 9 3.jpg cls 4608 1 3.cls\n",
        "v1.2 2\ncls 512 1 1.cls\njpg 3584 5 4.jpg cls 4608 1 4.cls\n",
        "v1.2 2\ncls 512 1 1.cls\njpg 3584 99999999999999999999 3.jpg\n",
        "v1.2 2\ncls 512 1 1.cls\njpg 18446744073709551104 5 3.jpg\n",
        "v1.2 1\njpg 1536 3 2.jpg cls 2560 1 2.cls\n",
        "v1.2 1\njpg 3584 5 3.jpg cls 4608 1 3.cls\n",
        "v1.2 0\n",
        "",
    ] {
        fs::write(folder.path().join("a.idx"), wrong).unwrap();
        assert_eq!(cls(&path).unwrap(), [1, 2, 3], "{wrong:?}");
    }
}

fn records(path: &Path) -> Result<Vec<Record>, DataError> {
    let options = Options { index_dir: path.parent().map(|folder| folder.join("none/none")), ..Options::default() };
    let source = open(Objects::local(vec![path.into()])?, &Selection::All, &[], &options)?;
    (0..source.len()).map(|row| source.read(row)).collect()
}

/// Whatever is wrong with a tar, there is an error, or files that it has: neither a panic nor a large allocation.
#[test]
fn damaged_tars_give_files_that_they_have_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!("{}.txt", "name".repeat(60));
    let files = [("a.jpg", &b"picture"[..]), ("a.cls", b"1"), (&long, b"long"), ("b.jpg", &[7; 1500])];
    let path = shard(folder.path(), "a.tar", &files);
    let good = fs::read(&path).unwrap();
    assert_eq!(records(&path).unwrap().iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1]);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (mut errors, mut whole) = (0, 0);
    for _ in 0..4000 {
        let mut bad = good.clone();
        match rng.random_range(0..4) {
            0 => bad.truncate(rng.random_range(0..good.len())),
            1 => bad[rng.random_range(0..good.len())] ^= 1 << rng.random_range(0..8),
            // A header that is wrong, but whose checksum is right.
            2 => {
                let at = 512 * [0, 2, 4, 6, 8][rng.random_range(0..5)];
                let block = &mut bad[at..at + 512];
                block[rng.random_range(0..512)] = rng.random();
                block[148..156].fill(b' ');
                let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
                block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            }
            _ => {
                let from = rng.random_range(0..good.len());
                bad.extend_from_slice(&good[from..]);
            }
        }
        fs::write(&path, &bad).unwrap();
        match records(&path) {
            Ok(rows) => {
                whole += 1;
                for (name, cell) in rows.into_iter().flatten() {
                    let Cell::Raw(bytes, kind) = cell else { panic!("{name} is {cell:?}") };
                    assert!(bad.windows(bytes.len().max(1)).any(|part| part == bytes) || bytes.is_empty(), "{name}");
                    assert!(kind == Raw::Bytes || bytes.len() < bad.len());
                }
            }
            Err(DataError::Damaged { .. } | DataError::Unsupported { .. } | DataError::Read { .. }) => errors += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(errors > 500 && whole > 500, "{errors} errors, {whole} without");
}

/// The file is open, so it is still the one that was looked at.
#[test]
fn a_part_that_cannot_be_read_is_told_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = shard(folder.path(), "a.tar", &[("a.jpg", b"1"), ("b.jpg", &[7; 4096])]);
    let rows = Rows::<(Bytes,)>::tar(&path).columns(["jpg"]).open().unwrap();
    File::options().write(true).open(&path).unwrap().set_len(2000).unwrap();
    assert_eq!(rows.get(0).unwrap().0, "1");
    let error = rows.get(1).unwrap_err().to_string();
    assert!(error.contains("cannot read bytes 1536 to 5632 of") && error.contains("a.tar, key `b`: "), "{error}");
}

/// How long `open` takes where all indices are saved: of files that are the same, and of files that were touched just now.
/// `cargo test --release -- --ignored opening --nocapture`.
#[test]
#[ignore = "a measurement"]
fn opening_many_tars_with_indices() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> =
        (0..200).map(|n| format!("{:03}.jpg", n / 2).replace("jpg", ["jpg", "cls"][n % 2])).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b"12"[..])).collect();
    let paths: Vec<_> = (0..1000).map(|n| shard(folder.path(), &format!("{n:04}.tar"), &files)).collect();
    let open = || {
        let since = std::time::Instant::now();
        let rows = Rows::<(Bytes, usize)>::tar(folder.path().join("*.tar")).columns(["jpg", "cls"]).open().unwrap();
        assert_eq!(rows.len(), 100_000);
        since.elapsed().as_secs_f64() * 1000.
    };
    std::thread::sleep(std::time::Duration::from_millis(2100));
    println!("OPEN without an index: {:.0} ms", open());
    for round in 0..4 {
        println!("OPEN of the same files: {:.1} {:.1} {:.1} ms", open(), open(), open());
        for path in &paths {
            fs::set_permissions(path, fs::metadata(path).unwrap().permissions()).unwrap();
        }
        println!("OPEN of touched files {round}: {:.1} {:.1} {:.1} ms", open(), open(), open());
        std::thread::sleep(std::time::Duration::from_millis(2100));
    }
}
