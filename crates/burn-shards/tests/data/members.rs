//! Files in rows that are arrays or sounds, or that a type of the user's decodes; and the keys in errors of tars.

use crate::write::{Column, mds, parquet, tar};
use burn::data::dataset::Dataset;
use burn_shards::{Array, DataError, Decode, Decoded, Rows};
use serde::de::DeserializeOwned;
use std::{error::Error, path::Path};

/// A file of NumPy's.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\0".as_slice(), &(header.len() as u16).to_le_bytes(), header.as_bytes(), data].concat()
}

/// The same two files as a column of each format that has bytes.
fn columns<T: DeserializeOwned>(folder: &Path, good: &[u8], bad: &[u8]) -> Vec<(&'static str, Rows<(T,)>)> {
    let tar = tar(folder, "a.tar", &[("0.npy", good), ("1.npy", bad)]);
    let values = [good, bad];
    let parquet = parquet(folder, "a.parquet", "required binary npy;", &[Column::Bytes(&values, &[], &[])]);
    let mds = mds(folder, &[("npy", "bytes")], &[&[good], &[bad]]);
    let builders = [("tar", Rows::tar(tar)), ("parquet", Rows::parquet(parquet)), ("mds", Rows::mds(mds))];
    builders.into_iter().map(|(name, rows)| (name, rows.columns(["npy"]).open().unwrap())).collect()
}

/// The error of a row.
fn error<T: std::fmt::Debug>(rows: &Rows<T>, row: usize) -> String {
    let error = rows.get(row).unwrap_err();
    error.source().and_then(|error| error.downcast_ref::<DataError>()).unwrap().to_string()
}

#[test]
fn an_array_of_numpy_is_read_from_each_format() {
    let folder = tempfile::tempdir().unwrap();
    let floats: Vec<u8> = [0.5_f32, -1.0, 2.0, 3.0, 4.0, 5.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    let (good, bad) = (npy("<f4", "(2, 3)", &floats), npy("<f4", "(2, 4)", &floats));
    for (name, rows) in columns::<Array<f32>>(folder.path(), &good, &bad) {
        let right = Array::new([2, 3], vec![0.5, -1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(rows.get(0).unwrap().0, right, "{name}");
        let error = error(&rows, 1);
        assert!(error.contains("row 1") && error.contains("[2, 4]") && error.contains("`npy`"), "{name}: {error}");
        assert_eq!(error.contains("key `1`"), name == "tar", "{error}");
    }
    for (name, rows) in columns::<Option<Array<i64>>>(folder.path(), &npy("<i2", "(1,)", &[7, 0]), &good) {
        assert_eq!(rows.get(0).unwrap().0.unwrap().data(), [7], "{name}");
        assert!(error(&rows, 1).contains("floating point"), "{name}");
    }
    let flags = columns::<Array<bool>>(folder.path(), &npy("|b1", "(2,)", &[0, 1]), b"GIF89a");
    assert_eq!(flags[0].1.get(0).unwrap().0.data(), [false, true]);
    assert!(error(&flags[0].1, 1).contains("the file is an image"));
}

/// A text that is written backwards.
#[derive(Debug, PartialEq)]
struct Backwards(String);

impl Decode for Backwards {
    type Error = std::string::FromUtf8Error;

    fn decode(mut bytes: Vec<u8>) -> Result<Self, Self::Error> {
        bytes.reverse();
        String::from_utf8(bytes).map(Self)
    }
}

#[test]
fn a_type_of_the_users_decodes_members_and_columns() {
    let folder = tempfile::tempdir().unwrap();
    for (name, rows) in columns::<Decoded<Backwards>>(folder.path(), b"abc", b"\xff") {
        assert_eq!(rows.get(0).unwrap().0.0, Backwards("cba".into()), "{name}");
        let error = error(&rows, 1);
        assert!(error.contains("utf-8") && error.contains("`npy`"), "{name}: {error}");
        assert_eq!(error.contains("key `1`"), name == "tar", "{error}");
    }
    // As the hub has sounds: a struct of bytes and a path.
    let schema = "optional group audio { optional binary bytes; optional binary path (STRING); }";
    let bytes = Column::Bytes(&[b"ab"], &[2, 0, 1], &[]);
    let audio = parquet(folder.path(), "b.parquet", schema, &[bytes, Column::Bytes(&[b"x", b"y"], &[2, 0, 2], &[])]);
    let rows = Rows::<(Option<Decoded<Backwards>>,)>::parquet(audio).columns(["audio"]).open().unwrap();
    assert_eq!(rows.get(0).unwrap().0, Some(Decoded(Backwards("ba".into()))));
    assert_eq!(rows.get(1).unwrap().0, None);
    assert!(error(&rows, 2).contains("no `bytes`, but [\"path\"]"));
}

#[test]
fn a_member_that_is_too_large_names_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = tar(folder.path(), "a.tar", &[("a/7.txt", b"0123456789")]);
    let rows = Rows::<(String,)>::tar(path).columns(["txt"]).largest_sample(5).open().unwrap();
    let error = error(&rows, 0);
    assert!(error.contains("key `a/7`") && error.contains("largest_sample(10)"), "{error}");
}

#[cfg(feature = "audio")]
#[test]
fn a_sound_is_read_from_a_tar_and_from_a_column() {
    use burn_shards::Audio;
    let wave: Vec<u8> = [
        b"RIFF".as_slice(),
        &40_u32.to_le_bytes(),
        b"WAVEfmt ",
        &16_u32.to_le_bytes(),
        &[1, 0, 1, 0],
        &8000_u32.to_le_bytes(),
        &16_000_u32.to_le_bytes(),
        &[2, 0, 16, 0],
        b"data",
        &4_u32.to_le_bytes(),
        &[0, 0x40, 0, 0x80],
    ]
    .concat();
    let folder = tempfile::tempdir().unwrap();
    for (name, rows) in columns::<Audio>(folder.path(), &wave, &wave[..43]) {
        let audio = rows.get(0).unwrap().0;
        assert_eq!((&*audio.samples().unwrap(), audio.channels(), audio.rate()), (&[0.5, -1.0][..], 1, 8000), "{name}");
        assert_eq!(error(&rows, 1).contains("key `1`"), name == "tar");
    }
    #[derive(Debug, serde::Deserialize)]
    struct Row {
        wav: Audio,
    }
    let files: [(&[u8], usize); 4] = [
        (include_bytes!("golden/audio/tone.mp3"), 40_000),
        (include_bytes!("golden/audio/tone.ogg"), 40_000),
        (include_bytes!("golden/audio/tone.m4a"), 41_024),
        (include_bytes!("golden/audio/tone.aac"), 41_984),
    ];
    for (file, frames) in files {
        for (name, rows) in columns::<Audio>(folder.path(), file, b"words") {
            assert_eq!(rows.get(0).unwrap().0.samples().unwrap().len(), frames, "{name}");
            assert!(error(&rows, 1).contains("is no sound: save it as FLAC"), "{name}");
        }
        // As the hub has sounds: a struct of bytes and a path.
        let schema = "optional group audio { optional binary bytes; optional binary path (STRING); }";
        let columns = [Column::Bytes(&[file], &[2, 0], &[]), Column::Bytes(&[b"a.mp3"], &[2, 0], &[])];
        let rows = parquet(folder.path(), "s.parquet", schema, &columns);
        let rows = Rows::<(Option<Audio>,)>::parquet(rows).columns(["audio"]).open().unwrap();
        assert_eq!(rows.get(0).unwrap().0.unwrap().frames(), frames);
        assert!(rows.get(1).unwrap().0.is_none());
    }
    let path = tar(folder.path(), "w.tar", &[("0.wav", &wave)]);
    let rows = Rows::<Row>::tar(path).open().unwrap();
    assert_eq!((rows.get(0).unwrap().wav.rate(), rows.sizes("wav").unwrap()), (8000, vec![wave.len()]));
}
