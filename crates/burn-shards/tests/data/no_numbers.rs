//! Bytes that are no numbers: files of another format and empty ones are refused, and the error says what to do.

use crate::shards::{Column, Entry, file, mds, mds_index, tar};
use burn::data::dataset::Dataset;
use burn_shards::{Array, Rows, TokenType, Tokens};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use std::{collections::HashMap, fmt::Debug, fs, path::Path};

const NPY: &[u8] =
    b"\x93NUMPY\x01\x00\x76\x00{'descr': '<u2', 'fortran_order': False, 'shape': (4,), }\n\x01\x00\x02\x00";

/// How files of other formats begin, and what an error calls them.
fn others() -> Vec<(&'static str, Vec<u8>)> {
    let starts: [(&str, &[u8]); 32] = [
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
        ("git lfs pull", LFS),
        ("git annex get", b"/annex/objects/SHA256E-s1--00.bin\n"),
        ("web server", b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head>"),
        ("web server", b"<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code></Error>"),
        ("web server", b"404: Not Found"),
        ("PDF", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3"),
        ("PackedDataset", b"LITPKDS\x01\0\0\0\0\0\0\0\x08\0\x10\0\0\0\0\0\0"),
        ("Megatron", b"MMIDIDX\0\0\x01\0\0\0\0\0\0\0\x08"),
        ("pickle", b"\x80\x04\x95\x0b\0\0\0\0\0\0\0]\x94(K\x01"),
        ("pickle", b"\x80\x02]q\0(K\x01"),
        ("safetensors", TENSORS),
        ("torch.save", b"PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0archive/data.pkl"),
        (".npz", b"PK\x03\x04\x2d\0\0\0\0\0\0\0\x21\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x09\0\x14\0arr_0.npy"),
        ("sound", b"RIFF\x24\x08\0\0WAVEfmt \x10\0\0\0"),
        ("sound", b"fLaC\0\0\0\x22\x10\0\x10\0"),
        ("sound", b"OggS\0\x02\0\0\0\0\0\0\0\0"),
        ("sound", b"ID3\x04\0\0\0\0\0\x23"),
        ("image", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ("image", b"GIF89a\x01\0\x01\0"),
        ("image", b"RIFF\x24\x08\0\0WEBPVP8 "),
        ("tensors", TENSORS),
        ("UTF-16", b"\xff\xfe{\0\"\0a\0\"\0:\0 \x001\0}\0"),
    ];
    // A text ends, and behind other starts there are numbers.
    let rest = |start: &[u8]| if start.is_ascii() && !start.contains(&0) { b'\n' } else { 2 };
    starts.iter().map(|(name, start)| (*name, [start, &[rest(start); 1000][..]].concat())).collect()
}

const LFS: &[u8] = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n";
const TENSORS: &[u8] = b"\x2e\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\"";

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
    // Of bytes, all but an array and a pointer are bytes.
    let text = file(folder.path(), "a.txt", "PAR1 is a text");
    assert_eq!(Tokens::open_raw(text, TokenType::U8).unwrap().len(), 14);
    let array = file(folder.path(), "a.npy", NPY);
    let error = Tokens::open_raw(&array, TokenType::U8).unwrap_err().to_string();
    assert!(error.contains("tofile"), "{error}");
    assert!(Tokens::open(&array).unwrap_err().to_string().contains("tofile"));
}

/// The file that Git has in the place of one of `size` bytes.
fn pointer(size: u64) -> String {
    let hash = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
    format!("version https://git-lfs.github.com/spec/v1\noid sha256:{hash}\nsize {size}\n")
}

#[test]
fn a_pointer_of_git_lfs_is_no_tokens_whatever_its_size() {
    let folder = tempfile::tempdir().unwrap();
    for digits in 0..14 {
        let path = file(folder.path(), "train.bin", pointer(10u64.pow(digits)));
        for kind in [TokenType::U8, TokenType::I8, TokenType::U16, TokenType::I16, TokenType::U32, TokenType::I64] {
            let error = Tokens::open_raw(&path, kind).unwrap_err().to_string();
            assert!(error.contains("git lfs pull") && error.contains("train.bin"), "{digits} {kind}: {error}");
        }
        let error = Tokens::open(&path).unwrap_err().to_string();
        assert!(error.contains("git lfs pull") && error.contains("train.bin"), "{digits}: {error}");
    }
}

#[test]
fn a_pointer_beside_a_file_that_is_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let golden = |name: &str| fs::read(crate::tokens::golden(name)).unwrap();
    let both = [pointer(1000).into_bytes(), golden("megatron.bin"), golden("megatron.idx")];
    for (bin, idx, named) in [(0, 0, "a.idx"), (1, 0, "a.idx"), (0, 2, "a.bin")] {
        let path = file(folder.path(), "a.bin", &both[bin]);
        file(folder.path(), "a.idx", &both[idx]);
        let error = Tokens::open(path).unwrap_err().to_string();
        assert!(error.contains("git lfs pull") && error.contains(named), "{error}");
    }
    // Of MDS: the index, a shard, and one that is compressed.
    let columns: [Column; 1] = [("x", "bytes", None)];
    mds(folder.path(), &columns, &[vec![vec![7; 1000]]]);
    let open = || Rows::<(Bytes,)>::mds(folder.path()).columns(["x"]).cache(folder.path().join("cache"), 1 << 30);
    assert_eq!(open().open().unwrap().len(), 1);
    file(folder.path(), "shard.00000.mds", pointer(1022));
    let error = open().open().unwrap_err().to_string();
    assert!(error.contains("git lfs pull") && error.contains("shard.00000.mds"), "{error}");
    fs::remove_file(folder.path().join("shard.00000.mds")).unwrap();
    mds_index(folder.path(), &columns, 1, 1022, Some((500, "zstd")));
    file(folder.path(), "shard.00000.mds.zstd", pointer(500));
    let error = open().open().unwrap_err().to_string();
    assert!(error.contains("git lfs pull") && error.contains("shard.00000.mds.zstd"), "{error}");
    file(folder.path(), "index.json", pointer(400));
    let error = open().open().unwrap_err().to_string();
    assert!(error.contains("git lfs pull") && error.contains("index.json"), "{error}");
}

#[test]
fn a_member_of_a_tar_that_is_something_else_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let members: [Entry; 5] = ["1.npy", "1.json", "1.txt", "1.cls", "1.wav"].map(|name| (b'0', name, LFS));
    let path = file(folder.path(), "a.tar", tar(&members));
    let array = Rows::<(Array<f32>,)>::tar(&path).columns(["npy"]).open().unwrap().get(0).unwrap_err().to_string();
    let json = Rows::<(Vec<u8>,)>::tar(&path).columns(["json"]).open().unwrap().get(0).unwrap_err().to_string();
    let list = Rows::<(Vec<f32>,)>::tar(&path).columns(["npy"]).open().map(drop).unwrap_err().to_string();
    for error in [&array, &json] {
        assert!(error.contains("git lfs pull") && error.contains("key `1`"), "{error}");
    }
    assert!(list.contains("no numbers"), "{list}");
    fn refused<T: DeserializeOwned + Debug>(path: &Path, column: &str) {
        let rows = Rows::<(T,)>::tar(path).columns([column]).open().unwrap();
        let error = rows.get(0).unwrap_err().to_string();
        assert!(error.contains("git lfs pull") && error.contains("key `1`"), "{column}: {error}");
    }
    refused::<String>(&path, "txt");
    refused::<Option<String>>(&path, "txt");
    refused::<String>(&path, "json");
    refused::<i64>(&path, "cls");
    refused::<f32>(&path, "cls");
    refused::<bool>(&path, "cls");
    refused::<HashMap<String, i64>>(&path, "json");
    #[cfg(feature = "audio")]
    refused::<burn_shards::Audio>(&path, "wav");
    // Bytes are bytes, and a text may tell of a pointer.
    let bytes: (Bytes,) = Rows::tar(&path).columns(["txt"]).open().unwrap().get(0).unwrap();
    assert_eq!(bytes.0, LFS);
    let long = [LFS, &[b'a'; 1024]].concat();
    let path = file(folder.path(), "b.tar", tar(&[(b'0', "1.txt", &long)]));
    let text: (String,) = Rows::tar(&path).columns(["txt"]).open().unwrap().get(0).unwrap();
    assert_eq!(text.0.as_bytes(), long);
}

#[test]
fn texts_are_no_tokens_and_a_table_is_no_json() {
    let folder = tempfile::tempdir().unwrap();
    let table = "text,label\n\"Good, but long\",1\nBad,0\n";
    for (text, what) in [
        (table.repeat(2), "pandas"),
        (table.replace(',', "\t"), "pandas"),
        ("It was a bright cold day in April, and the clocks\nwere striking thirteen.\n".into(), "Tokens::open_raw"),
        ("{\"text\": \"a\"}\n".repeat(4), "Rows::jsonl"),
    ] {
        // Of any size, odd or even.
        for text in [text.clone(), text.clone() + "\n"] {
            let path = file(folder.path(), "a.bin", &text);
            let errors = [
                Tokens::open(&path).unwrap_err().to_string(),
                Tokens::open_raw(&path, TokenType::U16).unwrap_err().to_string(),
                Tokens::open_raw(&path, TokenType::I32).unwrap_err().to_string(),
                Rows::<(Bytes,)>::parquet(&path).columns(["x"]).open().unwrap_err().to_string(),
                Rows::<(Bytes,)>::tar(&path).columns(["x"]).open().unwrap_err().to_string(),
            ];
            for error in errors {
                assert!(error.contains(what) && error.contains("a.bin"), "{what}: {error}");
            }
            let lines = Rows::<HashMap<String, String>>::jsonl(&path).open();
            assert_eq!(lines.is_ok(), what == "Rows::jsonl", "{what}: {lines:?}");
            lines.err().into_iter().for_each(|error| assert!(error.to_string().contains(what), "{error}"));
            // A text is a file of tokens of one byte.
            assert_eq!(Tokens::open_raw(&path, TokenType::U8).unwrap().len(), text.len());
        }
    }
    // Bad lines are errors of their rows, if there is an object.
    let path = file(folder.path(), "a.jsonl", "a,b\n1,2\n3,4\n{\"a\": \"x\"}\n");
    let rows = Rows::<HashMap<String, String>>::jsonl(path).open().unwrap();
    assert_eq!(((0..4).filter(|row| rows.get(*row).is_err()).count(), rows.get(3).unwrap()["a"].as_str()), (3, "x"));
}

#[test]
fn tokens_that_begin_as_a_short_mark_are_tokens() {
    let folder = tempfile::tempdir().unwrap();
    for start in [
        &b"PK"[..],
        b"BM",
        b"\x80\x04",
        b"\x80\x02",
        b"\xff\xfb",
        b"\xff\xd8",
        b"\x1f\x8b",
        b"\xff\xfe",
        b"II",
        b"{\"",
        b"[1",
        b"ID",
    ] {
        for next in [0u16, 7, 9, 50256, 65535] {
            let bytes = [start, &[next; 999].map(u16::to_le_bytes).concat()].concat();
            let path = file(folder.path(), "train.bin", &bytes);
            let tokens = Tokens::open(path).unwrap_or_else(|error| panic!("{start:?} {next}: {error}"));
            assert_eq!(tokens.len(), 1000);
        }
    }
    // So few letters may be tokens.
    let path = file(folder.path(), "train.bin", [b'a'; 30]);
    assert_eq!(Tokens::open(path).unwrap().len(), 15);
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
    assert!(error.contains("`npy`") && error.contains("`burn_shards::Array`, `bytes::Bytes`"), "{error}");
    for error in [
        Rows::<(Vec<u16>,)>::tar(&path).columns(["npy"]).open().map(drop),
        Rows::<(Vec<i64>,)>::tar(&path).columns(["npy"]).open().map(drop),
        Rows::<([f32; 3],)>::tar(&path).columns(["jpg"]).open().map(drop),
        Rows::<(Vec<Option<i8>>,)>::tar(&path).columns(["jpg"]).open().map(drop),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("no numbers"), "{error}");
        // No file was read.
        assert!(!error.contains("the file is"), "{error}");
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

#[cfg(feature = "tokenizers")]
#[test]
fn a_tokeniser_or_a_template_that_was_not_downloaded_is_named() {
    use burn_shards::{ChatTemplate, HfTokenizer};
    let folder = tempfile::tempdir().unwrap();
    let named = |error: String, name: &str| assert!(error.contains("git lfs pull") && error.contains(name), "{error}");
    named(HfTokenizer::open(file(folder.path(), "tokenizer.json", LFS)).unwrap_err().to_string(), "tokenizer.json");
    let page = file(folder.path(), "page.json", "<!doctype html><html><body>Not found</body></html>");
    assert!(HfTokenizer::open(page).unwrap_err().to_string().contains("web server"));
    let template = file(folder.path(), "chat_template.jinja", LFS);
    named(ChatTemplate::open(template).unwrap_err().to_string(), "chat_template.jinja");
    // The template beside a good file, too.
    let config = file(folder.path(), "tokenizer_config.json", "{}");
    named(ChatTemplate::open(&config).unwrap_err().to_string(), "chat_template.jinja");
    file(folder.path(), "tokenizer_config.json", LFS);
    named(ChatTemplate::open(config).unwrap_err().to_string(), "tokenizer_config.json");
}
