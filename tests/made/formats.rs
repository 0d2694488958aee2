//! The same 240 rows in each format.

use crate::{
    golden::golden,
    server::{Files, SECRET, Server, folder},
};
use burn_shards::{Rows, RowsBuilder};
use bytes::Bytes;
use std::{fs, io::Write, path::Path};

pub const ROWS: usize = 240;

#[derive(Debug, Clone, serde::Deserialize)]
pub struct Row {
    pub bytes: Bytes,
    pub label: i64,
}

/// The bytes of a row, as `golden/make_numbers.py` has them.
pub fn bytes(row: usize) -> Vec<u8> {
    (0..row * 37 % 89 + 1).map(|at| ((row * 31 + at * 7) % 251) as u8).collect()
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Format {
    Tar,
    Mds,
    Jsonl,
    /// Parquet whose values are read one by one.
    Direct,
    /// Parquet of which a page is decoded for its neighbours.
    Pages,
    /// Parquet of which a column chunk is decoded.
    Chunks,
}

pub const FORMATS: [Format; 6] =
    [Format::Tar, Format::Mds, Format::Jsonl, Format::Direct, Format::Pages, Format::Chunks];

impl Format {
    /// Writes two shards into a folder, except of Parquet, which is there.
    pub fn open(self, folder: &Path) -> RowsBuilder<Row> {
        let parquet = |name: &str| Rows::parquet(golden("numbers").join(name)).index_dir(folder);
        match self {
            Self::Direct => parquet("direct-*.parquet"),
            Self::Pages => parquet("pages-*.parquet"),
            Self::Chunks => parquet("chunks-*.parquet"),
            written => written.write(folder, ROWS, 2),
        }
    }

    /// Writes rows into a folder, as many into each shard. Parquet is none that is written here.
    pub fn write(self, folder: &Path, rows: usize, shards: usize) -> RowsBuilder<Row> {
        let of_one = rows / shards;
        let parts = (0..shards).map(|part| part * of_one..(part + 1) * of_one);
        match self {
            Self::Tar => {
                for (part, rows) in parts.enumerate() {
                    let mut tar = tar::Builder::new(fs::File::create(folder.join(format!("{part}.tar"))).unwrap());
                    for row in rows {
                        for (end, bytes) in [("bytes", bytes(row)), ("label", row.to_string().into_bytes())] {
                            let mut header = tar::Header::new_ustar();
                            header.set_size(bytes.len() as u64);
                            tar.append_data(&mut header, format!("{row:04}.{end}"), &*bytes).unwrap();
                        }
                    }
                    tar.finish().unwrap();
                }
                Rows::tar(folder.join(format!("{{0..{}}}.tar", shards - 1)))
            }
            Self::Mds => {
                let shards = parts.enumerate().map(|(part, rows)| mds(folder, part, rows.collect()));
                let index = serde_json::json!({"version": 2, "shards": shards.collect::<Vec<_>>()});
                fs::write(folder.join("index.json"), index.to_string()).unwrap();
                Rows::mds(folder)
            }
            Self::Jsonl => {
                for (part, rows) in parts.enumerate() {
                    let mut file = fs::File::create(folder.join(format!("{part}.jsonl"))).unwrap();
                    for row in rows {
                        writeln!(file, "{}", serde_json::json!({"bytes": bytes(row), "label": row})).unwrap();
                    }
                }
                Rows::jsonl(folder.join(format!("{{0..{}}}.jsonl", shards - 1)))
            }
            Self::Direct | Self::Pages | Self::Chunks => unreachable!("Python has written it"),
        }
    }
}

/// The rows of a format, behind a server. Its files are those that `Format::open` has written to the folder.
pub fn remote(format: Format, server: &Server, index_dir: &Path) -> RowsBuilder<Row> {
    let url = |path: &str| server.url(path).replace("http://", &format!("http://me:{SECRET}@"));
    let rows = match format {
        Format::Tar => Rows::tar(url("/{0..1}.tar")),
        Format::Mds => Rows::mds(url("")),
        Format::Jsonl => Rows::jsonl(url("/{0..1}.jsonl")),
        Format::Direct => Rows::parquet(url("/direct-{0..1}.parquet")),
        Format::Pages => Rows::parquet(url("/pages-{0..1}.parquet")),
        Format::Chunks => Rows::parquet(url("/chunks-{0..1}.parquet")),
    };
    rows.index_dir(index_dir)
}

pub fn files(format: Format, written: &Path) -> Files {
    drop(format.open(written));
    let mut files = folder(written);
    files.extend(folder(&golden("numbers")));
    files
}

/// Two shards of JSON lines, for a server.
pub fn jsonl_files() -> Files {
    let written = tempfile::tempdir().unwrap();
    drop(Format::Jsonl.open(written.path()));
    folder(written.path())
}

/// Writes a shard as MosaicML's `streaming` does, and returns its entry of the index.
fn mds(folder: &Path, part: usize, rows: Vec<usize>) -> serde_json::Value {
    let samples: Vec<Vec<u8>> = rows
        .iter()
        .map(|row| {
            let bytes = bytes(*row);
            [&(bytes.len() as u32).to_le_bytes()[..], &bytes, &(*row as i64).to_le_bytes()].concat()
        })
        .collect();
    let config = b"{}";
    let mut at = 4 * (samples.len() as u32 + 2) + config.len() as u32;
    let mut file = (samples.len() as u32).to_le_bytes().to_vec();
    file.extend(at.to_le_bytes());
    for sample in &samples {
        at += sample.len() as u32;
        file.extend(at.to_le_bytes());
    }
    file.extend(config);
    samples.iter().for_each(|sample| file.extend(sample));
    let name = format!("shard.{part:05}.mds");
    fs::write(folder.join(&name), &file).unwrap();
    serde_json::json!({
        "column_names": ["bytes", "label"], "column_encodings": ["bytes", "int"], "column_sizes": [null, 8],
        "compression": null, "format": "mds", "hashes": [], "samples": samples.len(), "size_limit": null, "version": 2,
        "raw_data": {"basename": name, "bytes": file.len(), "hashes": {}}, "zip_data": null,
    })
}

/// What stands for all bytes of a row.
pub fn sum(bytes: &[u8]) -> i64 {
    bytes.iter().fold(bytes.len() as i64, |sum, byte| sum.wrapping_mul(31).wrapping_add(i64::from(*byte)))
}
