//! Any bytes as a tar, compared with the crate `tar`. Headers get the right checksum: else few inputs would be read any further.
#![no_main]

use burn_pinned::data::Rows;
use burn_pinned_fuzz::{as_file, begin, read, run};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use std::{collections::HashMap, io::Read};

/// Names and data of all files, if the other reader can read all of it.
fn told(data: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in tar::Archive::new(data).entries().ok()? {
        let mut entry = entry.ok()?;
        let header = entry.header().as_bytes();
        if header[257..262] != *b"ustar" {
            return None; // it knows no long names there
        }
        if matches!(header[156], b'0' | b'7' | 0) {
            let (name, mut bytes) = (entry.path_bytes().into_owned(), Vec::new());
            let pax = entry.pax_extensions().ok()?.into_iter().flatten().flatten();
            if pax.into_iter().any(|record| record.key_bytes() == b"path" && record.value_bytes() != name) {
                return None; // there is a long name too, and readers differ
            }
            entry.read_to_end(&mut bytes).ok()?;
            files.push((name, bytes));
        }
    }
    Some(files)
}

/// Puts a magic that all readers know, and the right checksum, into each block that looks like a header.
fn with_checksums(data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    for block in data.chunks_exact_mut(512).filter(|block| block[257..262] == *b"ustar") {
        let magic = if block[262] == 0 { b"ustar\x0000" } else { b"ustar  \0" };
        block[257..265].copy_from_slice(magic);
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    }
    data
}

/// Each file of a sample is one that the other reader finds too.
fn compare(data: &[u8]) {
    let rows = as_file("a.tar", &[data], |path| {
        let rows = Rows::<HashMap<String, Bytes>>::tar(path).open().ok()?;
        let keys = Rows::<(Bytes,)>::tar(path).columns(["__key__"]).open().ok()?; // by the index that was saved
        Some((read(&rows), read(&keys)))
    });
    let (Some((rows, keys)), Some(told)) = (rows, told(data)) else { return };
    assert_eq!(rows.len(), keys.len());
    let both = rows.iter().zip(&keys).filter_map(|(row, key)| row.as_ref().ok().zip(key.as_ref().ok()));
    for (row, (key,)) in both {
        let key = String::from_utf8_lossy(key);
        for (column, bytes) in row.iter().filter(|(column, _)| !column.starts_with("__")) {
            let is = |name: &[u8]| {
                let name = String::from_utf8_lossy(name);
                let rest = name.strip_prefix(&*key).and_then(|rest| rest.strip_prefix('.'));
                rest.is_some_and(|rest| rest.to_lowercase() == *column)
            };
            // The other reader does not end a name at its first zero.
            let either = |name: &[u8]| is(name) || is(name.split(|byte| *byte == 0).next().unwrap_or_default());
            assert!(told.iter().any(|(name, told)| either(name) && told == bytes), "{key:?}.{column} of {told:?}");
        }
    }
}

fn written(fill: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    fill(&mut tar);
    tar.into_inner().expect("memory has no errors")
}

fn add(tar: &mut tar::Builder<Vec<u8>>, mut header: tar::Header, name: &str, bytes: &[u8]) {
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, name, bytes).expect("memory has no errors");
}

fuzz_target!(
    init: begin(|| {
        let short = |tar: &mut tar::Builder<Vec<u8>>| {
            add(tar, tar::Header::new_ustar(), "0001.jpg", &[7; 30]);
            add(tar, tar::Header::new_ustar(), "0001.cls", b"3");
            add(tar, tar::Header::new_ustar(), "a/0002.seg.PNG", &[]);
        };
        let long = |tar: &mut tar::Builder<Vec<u8>>| {
            add(tar, tar::Header::new_gnu(), &format!("{}/{}.txt", "d".repeat(120), "n".repeat(90)), b"gnu");
            tar.append_pax_extensions([("path", &b"pax/long.txt"[..]), ("mtime", b"1.5")]).expect("memory");
            add(tar, tar::Header::new_ustar(), "short.txt", b"pax");
        };
        vec![written(short), written(long)]
    }),
    |data: &[u8]| run(|| compare(&with_checksums(data)))
);
