//! Any bytes as an MDS folder: its `index.json`, and a shard, which may be compressed.
#![no_main]

#[path = "../../tests/differential/exact.rs"]
mod exact;

use burn_pinned::data::Rows;
use burn_pinned_fuzz::{BETWEEN, as_files, begin, cut, read, run};
use exact::Exact;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use std::{collections::HashMap, io::Write};

/// The file, and the file that is not compressed, which is there only if it is the only one.
const PACKED: &str = "a.packed";
const SHARD: &str = "a.mds";

fn open(data: &[u8]) {
    let files = cut(data);
    let shard = files.get(1).copied().unwrap_or_default();
    // A third file is one beside the first shard.
    let name = if files.len() > 2 { PACKED } else { SHARD };
    as_files(&[("index.json", files[0]), (name, shard)], |folder| {
        let cache = folder.join("cache");
        let rows = Rows::<HashMap<String, Exact>>::mds(folder).cache(cache, 1 << 20).largest_sample(1 << 20);
        if let Ok(rows) = rows.open() {
            read(&rows);
        }
    });
}

/// Encodings with the bytes of two values each. `None` is a size that each row tells.
fn columns() -> Vec<(&'static str, Option<usize>, [Vec<u8>; 2])> {
    let two = |one: &[u8], other: &[u8]| [one.to_vec(), other.to_vec()];
    vec![
        ("int", Some(8), two(&[7, 0, 0, 0, 0, 0, 0, 0], &[0xff; 8])),
        ("float32", Some(4), two(&[0, 0, 0x80, 0x3f], &[0, 0, 0xc0, 0x7f])),
        ("str", None, two(b"text", b"")),
        ("bytes", None, two(&[1, 2, 3], &[])),
        ("json", None, two(b"{\"a\": [1, null]}", b"\"b\"")),
        ("str_int", None, two(b"-12", b"340282366920938463463374607431768211455")),
        ("ndarray", None, two(&[0, 0b0000_0100, 3, 1, 2, 3], &[8, 0b0000_1000, 1, 2, 1, 2])),
        ("ndarray:float32:2", None, two(&[0; 8], &[1; 8])),
        ("pil", None, two(&[&3u32.to_le_bytes()[..], &[1, 0, 0, 0, 1, 0, 0, 0], b"RGB", &[9; 3]].concat(), &[0; 12])),
        ("jpeg_array", None, two(&[&1u32.to_le_bytes()[..], &2u32.to_le_bytes(), &[0xff, 0xd8]].concat(), &[0; 4])),
    ]
}

fn folder(compression: Option<&str>) -> Vec<u8> {
    let columns = columns();
    let config = json!({
        "column_names": (0..columns.len()).map(|at| format!("c{at}")).collect::<Vec<_>>(),
        "column_encodings": columns.iter().map(|column| column.0).collect::<Vec<_>>(),
        "column_sizes": columns.iter().map(|column| column.1).collect::<Vec<_>>(),
    });
    let head = config.to_string();
    let row = |nth: usize| -> Vec<u8> {
        let variable = columns.iter().filter(|column| column.1.is_none());
        let sizes = variable.flat_map(|column| (column.2[nth].len() as u32).to_le_bytes());
        sizes.chain(columns.iter().flat_map(|column| column.2[nth].clone())).collect()
    };
    let rows = [row(0), row(1)];
    let mut at = 4 * (rows.len() + 2) + head.len();
    let mut shard = (rows.len() as u32).to_le_bytes().to_vec();
    shard.extend((at as u32).to_le_bytes());
    for row in &rows {
        at += row.len();
        shard.extend((at as u32).to_le_bytes());
    }
    shard.extend(head.as_bytes());
    shard.extend(rows.concat());
    let packed = match compression {
        None => shard.clone(),
        Some("zstd") => zstd::encode_all(&shard[..], 1).expect("memory has no errors"),
        Some("gz") => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&shard).and_then(|()| encoder.finish()).expect("memory has no errors")
        }
        // Another method than the name says: what fails is the decoder's.
        Some(_) => shard.iter().map(|byte| byte ^ 0x55).collect(),
    };
    let mut entry = config;
    entry["format"] = json!("mds");
    entry["version"] = json!(2);
    entry["samples"] = json!(rows.len());
    entry["raw_data"] = json!({"basename": SHARD, "bytes": shard.len()});
    entry["compression"] = compression.map_or(Value::Null, Into::into);
    entry["zip_data"] = compression.map_or(Value::Null, |_| json!({"basename": PACKED, "bytes": packed.len()}));
    let index = json!({"version": 2, "shards": [entry]}).to_string().into_bytes();
    let third: &[u8] = if compression.is_some() { BETWEEN } else { &[] };
    [&index[..], BETWEEN, &packed, third].concat()
}

fuzz_target!(
    init: begin(|| [None, Some("zstd"), Some("gz"), Some("br"), Some("bz2"), Some("snappy")].map(folder).to_vec()),
    |data: &[u8]| run(|| open(data))
);
