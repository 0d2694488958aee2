//! Bytes that are no numbers: files of another format and empty ones are refused, and the error says what to do.

use crate::shards::{Column, file, mds, tar};
use burn::data::dataset::Dataset;
use burn_shards::{Rows, TokenType, Tokens};
use bytes::Bytes;
use std::{fs, path::Path};

const NPY: &[u8] =
    b"\x93NUMPY\x01\x00\x76\x00{'descr': '<u2', 'fortran_order': False, 'shape': (4,), }\n\x01\x00\x02\x00";

/// How files of other formats begin, and what an error calls them.
fn others() -> Vec<(&'static str, Vec<u8>)> {
    let starts: [(&str, &[u8]); 10] = [
        ("NumPy", NPY),
        ("zip", b"PK\x03\x04\x14\x00\x00\x00"),
        ("zip", b"PK\x05\x06\x00\x00\x00\x00"),
        ("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00"),
        ("Zstandard", b"\x28\xb5\x2f\xfd\x04\x00\x01\x00"),
        ("bzip2", b"BZh91AY&SY"),
        ("xz", b"\xfd7zXZ\x00\x00\x04"),
        ("LZ4", b"\x04\x22\x4d\x18\x64\x40\xa7\x00"),
        ("Parquet", b"PAR1\x15\x04\x15\x00"),
        ("HDF5", b"\x89HDF\r\n\x1a\n"),
    ];
    starts.iter().map(|(name, start)| (*name, [start, &[2; 1000][..]].concat())).collect()
}

#[test]
fn a_file_of_another_format_is_named_by_every_format() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in others() {
        let path = file(folder.path(), "a.bin", &bytes);
        let errors = [
            ("tar", Rows::<(Bytes,)>::tar(&path).columns(["x"]).open().unwrap_err().to_string()),
            ("jsonl", Rows::<(Bytes,)>::jsonl(&path).columns(["x"]).open().unwrap_err().to_string()),
            ("tokens", Tokens::open(&path).unwrap_err().to_string()),
            ("raw tokens", Tokens::open_raw(&path, TokenType::U16).unwrap_err().to_string()),
        ];
        let parquet = Rows::<(Bytes,)>::parquet(&path).columns(["x"]).open().unwrap_err().to_string();
        assert!(parquet.contains(if name == "Parquet" { "is it one, and whole?" } else { name }), "{parquet}");
        for (format, error) in errors {
            assert!(error.contains(name) && error.contains("a.bin"), "{format}: {error}");
        }
    }
    // Of bytes, all but an array are bytes.
    let text = file(folder.path(), "a.txt", "PAR1 is a text");
    assert_eq!(Tokens::open_raw(text, TokenType::U8).unwrap().len(), 14);
    let array = file(folder.path(), "a.npy", NPY);
    let error = Tokens::open_raw(&array, TokenType::U8).unwrap_err().to_string();
    assert!(error.contains("tofile"), "{error}");
    assert!(Tokens::open(&array).unwrap_err().to_string().contains("tofile"));
}

#[test]
fn a_compressed_tar_names_the_command() {
    let folder = tempfile::tempdir().unwrap();
    for (name, start, command) in
        [("a.tar.gz", &b"\x1f\x8b\x08\x00"[..], "gunzip"), ("a.tar.zst", b"\x28\xb5\x2f\xfd", "unzstd")]
    {
        let path = file(folder.path(), name, [start, &[9; 2000]].concat());
        let error = Rows::<(Bytes,)>::tar(&path).columns(["x"]).open().unwrap_err().to_string();
        assert!(error.contains(command) && error.contains(name), "{error}");
        let path = file(folder.path(), "short.tar", start);
        let error = Rows::<(Bytes,)>::tar(&path).columns(["x"]).open().unwrap_err().to_string();
        assert!(error.contains(command), "{error}");
    }
}

#[test]
fn bytes_of_a_file_are_no_list_of_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "a.tar", tar(&[(b'0', "1.npy", NPY), (b'0', "1.jpg", b"\xff\xd8\xff")]));
    let error = Rows::<(Vec<f32>,)>::tar(&path).columns(["npy"]).open().map(drop).unwrap_err().to_string();
    assert!(error.contains("`npy`") && error.contains("bytes::Bytes"), "{error}");
    for error in [
        Rows::<(Vec<u16>,)>::tar(&path).columns(["npy"]).open().map(drop),
        Rows::<(Vec<i64>,)>::tar(&path).columns(["npy"]).open().map(drop),
        Rows::<([f32; 3],)>::tar(&path).columns(["jpg"]).open().map(drop),
        Rows::<(Vec<Option<i8>>,)>::tar(&path).columns(["jpg"]).open().map(drop),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("no numbers"), "{error}");
    }
    let whole: (Bytes,) = Rows::tar(&path).columns(["npy"]).open().unwrap().get(0).unwrap();
    assert_eq!(whole.0, NPY);
    let bytes: (Vec<u8>,) = Rows::tar(&path).columns(["jpg"]).open().unwrap().get(0).unwrap();
    assert_eq!(bytes.0, [0xff, 0xd8, 0xff]);

    mds(folder.path(), &[("x", "bytes", None)], &[vec![vec![1, 2, 3]]]);
    let error = Rows::<(Vec<f32>,)>::mds(folder.path()).columns(["x"]).open().map(drop).unwrap_err().to_string();
    assert!(error.contains("`x`") && error.contains("no numbers"), "{error}");
}

#[test]
fn other_files_of_llm_c_are_no_tokens() {
    let folder = tempfile::tempdir().unwrap();
    for (magic, version, name) in [
        (20_240_522, 1, "evaluation"),
        (20_240_326, 3, "model"),
        (20_240_326, 5, "model"),
        (20_240_803, 5, "model"),
        (20_240_327, 2, "state"),
        (20_240_527, 1, "state"),
        (20_240_328, 2, "tokenizer"),
    ] {
        let mut bytes = [magic, version, 7].map(i32::to_le_bytes).concat();
        bytes.resize(2048, 1);
        let path = file(folder.path(), "a.bin", bytes);
        let error = Tokens::open(&path).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("llm.c") && error.contains("a.bin"), "{error}");
    }
}

#[test]
fn a_shard_of_no_bytes_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    file(folder.path(), "a.tar", tar(&[(b'0', "1.txt", b"a")]));
    file(folder.path(), "a.jsonl", "{\"x\": 1}\n");
    file(folder.path(), "a.bin", [1, 0, 2, 0]);
    file(folder.path(), "a.parquet", "is not looked at before");
    for name in ["b.tar", "b.jsonl", "b.bin", "b.parquet"] {
        file(folder.path(), name, []);
    }
    let errors = [
        Rows::<(String,)>::tar(at("*.tar")).columns(["txt"]).open().unwrap_err().to_string(),
        Rows::<(u8,)>::jsonl(at("*.jsonl")).columns(["x"]).open().unwrap_err().to_string(),
        Rows::<(u8,)>::parquet(at("*.parquet")).columns(["x"]).open().unwrap_err().to_string(),
        Tokens::open(at("*.bin")).unwrap_err().to_string(),
        Tokens::open_raw(at("b.bin"), TokenType::U8).unwrap_err().to_string(),
    ];
    for (error, name) in errors.iter().zip(["b.tar", "b.jsonl", "b.parquet", "b.bin", "b.bin"]) {
        assert!(error.contains(name) && error.contains("0 bytes"), "{error}");
    }
    // By itself such a file is no tar, and no Parquet. But lines may be none: so data frames without rows are written.
    let parquet = Rows::<(u8,)>::parquet(at("b.parquet")).columns(["x"]).open().unwrap_err().to_string();
    assert!(parquet.contains("b.parquet has 0 bytes"), "{parquet}");
    assert!(Rows::<(String,)>::tar(at("b.tar")).columns(["txt"]).open().unwrap_err().to_string().contains("0 bytes"));
    assert_eq!(Rows::<(u8,)>::jsonl(at("b.jsonl")).columns(["x"]).open().unwrap().len(), 0);
}

fn litdata(folder: &Path) {
    let index = r#"{"chunks": [{"chunk_bytes": 32, "chunk_size": 1, "dim": 2, "filename": "chunk-0-0.bin"}],
        "config": {"compression": null, "data_format": ["no_header_tensor:16"], "item_loader": "TokensLoader"}}"#;
    fs::write(folder.join("index.json"), index).unwrap();
    fs::write(folder.join("chunk-0-0.bin"), [1, 0, 0, 0, 12, 0, 0, 0, 16, 0, 0, 0, 7, 0, 8, 0]).unwrap();
}

#[test]
fn a_folder_of_litdata_is_named_with_the_cure() {
    let folder = tempfile::tempdir().unwrap();
    litdata(folder.path());
    let error = Rows::<(Bytes,)>::mds(folder.path()).columns(["x"]).open().unwrap_err().to_string();
    assert!(error.contains("LitData") && error.contains("MDSWriter"), "{error}");
    let error = Tokens::open(folder.path().join("*.bin")).unwrap_err().to_string();
    assert!(error.contains("LitData") && error.contains("chunk-0-0.bin"), "{error}");
}

#[test]
fn the_quality_of_a_jpeg_is_no_other_encoding() {
    let folder = tempfile::tempdir().unwrap();
    for encoding in ["jpeg:90", "jpeg:0", "jpeg:100"] {
        let columns: [Column; 1] = [("x", encoding, None)];
        mds(folder.path(), &columns, &[vec![vec![5, 6]]]);
        let row: (Bytes,) = Rows::mds(folder.path()).columns(["x"]).open().unwrap().get(0).unwrap();
        assert_eq!(*row.0, [5, 6], "{encoding}");
    }
    for wrong in ["jpeg:x", "jpeg:101", "jpeg:", "png:3"] {
        let columns: [Column; 1] = [("x", wrong, None)];
        mds(folder.path(), &columns, &[vec![vec![5]]]);
        let error = Rows::<(Bytes,)>::mds(folder.path()).columns(["x"]).open().unwrap_err().to_string();
        assert!(error.contains(wrong), "{error}");
    }
}
