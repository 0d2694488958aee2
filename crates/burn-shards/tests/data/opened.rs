//! What a saved index is worth: shards are not read again.

use crate::formats::Row;
use burn::data::dataset::Dataset;
use burn_shards::Rows;
use std::{
    fs::{self, File, OpenOptions},
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

const SHARDS: usize = 200;
const EACH: usize = 5;
/// A head, a tail, and once the extensions `bytes` and `label`: see `src/source/index/file.rs`.
const ENDS: usize = 16 + 24 + 8 + 2 * (4 + 5);
/// A line of the table, a checksum, and the number of the first part of each sample and of all parts.
const LINE: usize = 64 + 4 + 4 * (EACH + 1);

fn bytes(number: usize) -> Vec<u8> {
    vec![(number % 251) as u8; 1 + number % 700]
}

fn shard(folder: &Path, shard: usize) -> PathBuf {
    folder.join(format!("{shard:03}.tar"))
}

fn write(folder: &Path) {
    for number in 0..SHARDS {
        let mut tar = tar::Builder::new(File::create(shard(folder, number)).unwrap());
        for row in number * EACH..(number + 1) * EACH {
            for (end, bytes) in [("bytes", bytes(row)), ("label", row.to_string().into_bytes())] {
                let mut header = tar::Header::new_ustar();
                header.set_size(bytes.len() as u64);
                tar.append_data(&mut header, format!("{row}.{end}"), &*bytes).unwrap();
            }
        }
        tar.finish().unwrap();
    }
}

fn index(folder: &Path) -> PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let indices: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "index")).collect();
    assert_eq!(indices.len(), 1, "{indices:?}");
    indices[0].clone()
}

#[test]
fn many_shards_are_opened_from_one_small_index() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder);
    let open = || Rows::<Row>::tar(folder.join("{000..199}.tar")).open();
    let rows = open().unwrap();
    assert_eq!(rows.len(), SHARDS * EACH);
    for at in 0..rows.len() {
        let row = rows.get(at).unwrap();
        assert!(row.label == at as i64 && *row.bytes == *bytes(at), "row {at}");
    }
    let index = index(folder);
    let (bytes, made) = (fs::read(&index).unwrap(), fs::metadata(&index).unwrap().modified().unwrap());
    let parts = SHARDS * EACH * 2;
    assert!(bytes.len() <= ENDS + SHARDS * LINE + 16 * parts, "{} bytes for {parts} parts", bytes.len());

    let again = open().unwrap();
    assert_eq!((again.len(), again.get(777).unwrap().label), (SHARDS * EACH, 777));
    assert_eq!(fs::metadata(&index).unwrap().modified().unwrap(), made, "the index is not written again");
    assert!(fs::read(&index).unwrap() == bytes);

    // All headers of a shard become zeros, and its time is a new one: that shard alone is read again.
    let mut file = OpenOptions::new().write(true).open(shard(folder, 3)).unwrap();
    for place in headers(3) {
        file.seek(SeekFrom::Start(place)).unwrap();
        file.write_all(&[0; 512]).unwrap();
    }
    file.set_modified(std::time::SystemTime::now()).unwrap();
    assert_eq!(open().unwrap().len(), (SHARDS - 1) * EACH);
}

/// Where the headers of a shard are.
fn headers(shard: usize) -> Vec<u64> {
    let (mut places, mut at) = (Vec::new(), 0);
    for row in shard * EACH..(shard + 1) * EACH {
        for length in [bytes(row).len(), row.to_string().len()] {
            places.push(at);
            at += 512 + (length as u64).next_multiple_of(512);
        }
    }
    places
}
