//! Writes small shards: tars with headers by hand, MDS, JSON lines.

use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A column of MDS: its name, its encoding, and its fixed size.
pub type Column = (&'static str, &'static str, Option<u64>);

/// The bytes of an MDS shard.
pub fn mds_shard(columns: &[Column], rows: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let row = |values: &Vec<Vec<u8>>| {
        let variable = values.iter().zip(columns).filter(|(_, column)| column.2.is_none());
        let sizes = variable.flat_map(|(value, _)| (value.len() as u32).to_le_bytes());
        sizes.chain(values.iter().flatten().copied()).collect::<Vec<u8>>()
    };
    let config = json!({
        "column_names": columns.iter().map(|it| it.0).collect::<Vec<_>>(),
        "column_encodings": columns.iter().map(|it| it.1).collect::<Vec<_>>(),
        "column_sizes": columns.iter().map(|it| it.2).collect::<Vec<_>>(),
    });
    let config = config.to_string();
    let mut at = 4 * (rows.len() + 2) + config.len();
    let mut file = (rows.len() as u32).to_le_bytes().to_vec();
    file.extend((at as u32).to_le_bytes());
    let rows: Vec<Vec<u8>> = rows.iter().map(row).collect();
    for row in &rows {
        at += row.len();
        file.extend((at as u32).to_le_bytes());
    }
    file.extend(config.as_bytes());
    file.extend(rows.concat());
    file
}

/// Writes a folder with one MDS shard.
pub fn mds(folder: &Path, columns: &[Column], rows: &[Vec<Vec<u8>>]) {
    let file = mds_shard(columns, rows);
    fs::write(folder.join("shard.00000.mds"), &file).unwrap();
    mds_index(folder, columns, rows.len(), file.len(), None);
}

/// Writes the `index.json` of one shard. `zip` is the size of the compressed file and how it is compressed.
pub fn mds_index(folder: &Path, columns: &[Column], rows: usize, bytes: usize, zip: Option<(usize, &str)>) {
    let shard = json!({
        "column_names": columns.iter().map(|it| it.0).collect::<Vec<_>>(),
        "column_encodings": columns.iter().map(|it| it.1).collect::<Vec<_>>(),
        "column_sizes": columns.iter().map(|it| it.2).collect::<Vec<_>>(),
        "compression": zip.map(|(_, how)| how), "format": "mds", "hashes": [], "samples": rows, "size_limit": null,
        "version": 2, "raw_data": {"basename": "shard.00000.mds", "bytes": bytes, "hashes": {}},
        "zip_data": zip.map(|(bytes, how)| json!({"basename": format!("shard.00000.mds.{how}"), "bytes": bytes})),
    });
    fs::write(folder.join("index.json"), json!({"version": 2, "shards": [shard]}).to_string()).unwrap();
}

/// One entry of a tar: its kind, its name, and its bytes.
pub type Entry<'a> = (u8, &'a str, &'a [u8]);

/// A tar whose headers are as they are told, with the blocks of zeros at its end.
pub fn tar(entries: &[Entry]) -> Vec<u8> {
    tar_with(entries, |_, _| ())
}

/// The same. `change` may change each header before its checksum is made.
pub fn tar_with(entries: &[Entry], change: impl Fn(usize, &mut [u8])) -> Vec<u8> {
    let mut file = Vec::new();
    for (number, (kind, name, bytes)) in entries.iter().enumerate() {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", bytes.len()).as_bytes());
        header[156] = *kind;
        header[257..265].copy_from_slice(b"ustar\x0000");
        change(number, &mut header);
        header[148..156].fill(b' ');
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        file.extend(header);
        file.extend(*bytes);
        file.resize(file.len().next_multiple_of(512), 0);
    }
    file.resize(file.len() + 1024, 0);
    file
}

/// The records of an extended header.
pub fn pax(records: &[(&str, &str)]) -> Vec<u8> {
    let record = |(key, value): &(&str, &str)| {
        let rest = key.len() + value.len() + 3;
        let length = (rest + 1..).find(|length| length.to_string().len() + rest == *length).unwrap();
        format!("{length} {key}={value}\n").into_bytes()
    };
    records.iter().flat_map(record).collect()
}

/// Writes a file into a folder, and returns its path.
pub fn file(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// Puts another file in the place of one, with the same time. It must be as long.
pub fn replace(path: &Path, bytes: impl AsRef<[u8]>) {
    let before = fs::metadata(path).unwrap();
    assert_eq!(before.len(), bytes.as_ref().len() as u64, "another file of the same size");
    let new = path.with_extension("new");
    fs::write(&new, bytes).unwrap();
    fs::File::options().write(true).open(&new).unwrap().set_modified(before.modified().unwrap()).unwrap();
    fs::rename(new, path).unwrap();
}

/// A folder with files of bare tokens.
pub fn bare(files: &[(&str, &[u16])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, tokens) in files {
        let bytes: Vec<u8> = tokens.iter().copied().flat_map(u16::to_le_bytes).collect();
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}
