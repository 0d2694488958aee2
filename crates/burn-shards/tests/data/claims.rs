//! Lengths that a file or a server claims, and that nothing can hold.

use crate::formats::FORMATS;
use burn::data::dataset::Dataset;
use burn_shards::{DataError, Rows};
use std::{
    error::Error,
    fs::{self, File},
    path::Path,
};

/// More than any machine has, and less than a file may claim.
const HUGE: u64 = 1 << 42;

/// A tar with a small sample `a`, and a sample `b` that claims `huge` bytes, which are not there.
fn tar(huge: u64) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |name: &str, kind, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_path(name).unwrap();
        header.set_size(bytes.len() as u64);
        header.set_entry_type(kind);
        header.set_cksum();
        tar.append(&header, bytes).unwrap();
    };
    add("a.bin", tar::EntryType::Regular, b"small");
    let record = format!(" size={huge}\n");
    let length = record.len() + 2;
    add("pax", tar::EntryType::XHeader, format!("{length}{record}").as_bytes());
    add("b.bin", tar::EntryType::Regular, b"");
    let all = tar.into_inner().unwrap();
    all[..all.len() - 1024].to_vec()
}

/// A file with these bytes at its start, and a hole behind.
fn sparse(path: &Path, start: &[u8], bytes: u64) {
    fs::write(path, start).unwrap();
    File::options().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

type Sample = (bytes::Bytes,);

#[test]
fn a_sparse_sample_of_a_tar_is_an_error_of_that_sample() {
    let folder = tempfile::tempdir().unwrap();
    let (path, start) = (folder.path().join("a.tar"), tar(HUGE));
    sparse(&path, &start, start.len() as u64 + HUGE);
    let rows = Rows::<Sample>::tar(&path).columns(["bin"]).open().unwrap();
    assert_eq!(rows.get(0).unwrap().0, "small");
    let error = rows.get(1).unwrap_err();
    assert!(error.to_string().contains("write `.largest_sample(4398046511104)`"), "{error}");
    // A smaller limit is one of the option.
    let first = |limit| Rows::<Sample>::tar(&path).columns(["bin"]).largest_sample(limit).open().unwrap().get(0);
    let error = first(4).unwrap_err();
    let error = error.source().and_then(|error| error.downcast_ref()).unwrap();
    assert!(matches!(error, DataError::TooLarge { bytes: 5, limit: 4, .. }), "{error}");
    assert!(first(5).is_ok());
}

#[test]
fn a_line_without_end_is_an_error_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    sparse(&path, b"{\"a\": 1}\n", HUGE);
    let error = Rows::<(i64,)>::jsonl(&path).columns(["a"]).open().unwrap_err();
    assert!(matches!(&error, DataError::Damaged { .. }) && error.to_string().contains("the line at byte 9"), "{error}");
}

#[test]
fn a_table_of_rows_that_nothing_can_hold_is_an_error_of_its_shard() {
    let folder = tempfile::tempdir().unwrap();
    sparse(&folder.path().join("shard.00000.mds"), &u32::MAX.to_le_bytes(), HUGE);
    let index = serde_json::json!({"version": 2, "shards": [{
        "format": "mds", "version": 2, "samples": HUGE / 8, "column_names": ["a"], "column_encodings": ["int"],
        "column_sizes": [8], "raw_data": {"basename": "shard.00000.mds", "bytes": HUGE},
    }]});
    fs::write(folder.path().join("index.json"), index.to_string()).unwrap();
    let error = Rows::<(i64,)>::mds(folder.path()).columns(["a"]).open().unwrap_err();
    assert!(error.to_string().contains("shard.00000.mds"), "{error}");
}

#[test]
fn each_format_has_the_limit() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let is_read = |limit| match format.open(folder.path()).largest_sample(limit).open() {
            Ok(rows) => rows.get(0).is_ok(),
            Err(_) => false,
        };
        assert!(is_read(1 << 20) && !is_read(0), "{format:?}");
    }
}

#[cfg(feature = "http")]
mod web {
    use super::*;
    use crate::server::{Fault, Server};

    /// A server that gives parts of something endless, which begins with these bytes.
    fn endless(start: Vec<u8>, claim: u64) -> Server {
        Server::new([].into(), move |request| {
            let Some(range) = request.headers.get("range") else {
                return Fault::Answer(404, String::new(), String::new());
            };
            let (from, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
            let (from, last): (u64, u64) = (from.parse().unwrap(), last.parse().unwrap());
            // One answer gives a mebibyte at most.
            let end = (last + 1).min(claim).min(from + (1 << 20));
            let body: Vec<u8> = (from..end).map(|at| start.get(at as usize).copied().unwrap_or(0)).collect();
            let lines = format!("Content-Range: bytes {from}-{}/{claim}\r\n", end - 1);
            Fault::Answer(206, lines, String::from_utf8(body).unwrap())
        })
    }

    #[test]
    fn a_claim_of_a_server_is_an_error_of_the_sample() {
        let start = tar(1 << 60);
        let claim = start.len() as u64 + (1 << 60);
        let server = endless(start, claim);
        for ahead in [0, 1 << 20] {
            let (folder, url) = (tempfile::tempdir().unwrap(), server.url("/a.tar"));
            let rows = Rows::<Sample>::tar(url).columns(["bin"]).index_dir(folder.path()).read_ahead(ahead);
            let rows = rows.open().unwrap();
            assert_eq!(rows.get(0).unwrap().0, "small");
            assert!(rows.get(1).unwrap_err().to_string().contains(".largest_sample("));
        }
    }
}

/// Parquet of one column `a` whose footer claims 2^50 rows, with ten bytes of data.
#[cfg(feature = "parquet")]
const ROWS: &[u8] = b"PAR1\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x15\x02\x19,H\x06schema\x15\x02\x00\x15\x04%\x00\x18\x01a\x00\x16\x80\x80\x80\x80\x80\x80\x80\x04\x19\x1c\x19\x1c&\x08\x1c\x15\x04\x19\x15\x00\x19\x18\x01a\x15\x00\x16\x80\x80\x80\x80\x80\x80\x80\x04\x16\x14\x16\x14&\x08\x00\x00\x16\x14\x16\x80\x80\x80\x80\x80\x80\x80\x04\x00\x00P\x00\x00\x00PAR1";

#[cfg(feature = "parquet")]
#[test]
fn rows_that_nothing_can_hold_are_an_error_of_what_lists_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    fs::write(&path, ROWS).unwrap();
    let rows = Rows::<(i64,)>::parquet(&path).columns(["a"]).open().unwrap();
    assert_eq!(rows.len(), 1 << 50);
    assert!(rows.get(0).is_err() && rows.column::<i64>("a").is_err());
    for error in [rows.split(0.5, 1).unwrap_err(), rows.folds(2, 1).unwrap_err(), rows.select([0]).unwrap_err()] {
        assert!(error.to_string().contains("no memory for 1125899906842624 rows"), "{error}");
    }
}
