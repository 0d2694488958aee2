//! Very many shards, made up: files of holes, with an index of holes. Only what a few rows need is there.

use crate::{
    DataError, Rows,
    source::index::tests::holes::{page, save_a_hole_for_each},
    store::Objects,
    system::permutation::Permutation,
    tar::{samples::Samples, source::KIND},
};
use burn::data::dataset::Dataset;
use bytes::Bytes;
use std::{
    env,
    fs::{self, File},
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

/// A sample of a shard: a file of 3 bytes, behind its header.
const SAMPLE: u64 = 1024;
const BATCH: usize = 256;

/// The first rows of a shuffled epoch.
fn batch(rows: usize) -> Vec<usize> {
    let mut key = 1u64;
    let order = Permutation::new(rows as u64, || {
        key = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        key
    });
    (0..BATCH.min(rows)).map(|place| order.at(place as u64) as usize).collect()
}

/// Writes shards of holes, and their index with what the rows need. Returns the bytes of the index, and those on the disk.
fn write(folder: &Path, shards: usize, samples: usize, rows: &[usize]) -> (u64, u64) {
    let paths: Vec<_> = (0..shards).map(|shard| folder.join(format!("{shard:07}.tar"))).collect();
    for path in &paths {
        File::create(path).unwrap().set_len(SAMPLE * (samples as u64 + 1)).unwrap();
    }
    thread::sleep(Duration::from_millis(2100)); // a file that just changed is looked at
    let mut made = Samples::default();
    for sample in 0..samples as u64 {
        made.add(format!("{sample}.cls").as_bytes(), sample * SAMPLE, sample * SAMPLE + 512, 3).unwrap();
    }
    let part = made.end();
    let index = save_a_hole_for_each(&Objects::local(paths).unwrap(), KIND, &part, |file, start| {
        for row in rows {
            let (shard, sample) = (row / samples, (row % samples) as u64);
            let word = 4 * (samples as u64 + 1) + 16 * sample;
            for byte in [4 * sample, 4 * sample + 7, word, word + 15] {
                let (at, bytes) = page(&part, byte);
                file.write_all_at(&bytes, start(shard) + at).unwrap();
            }
        }
    });
    let meta = index.metadata().unwrap();
    (meta.len(), meta.blocks() * 512)
}

fn open(folder: &Path, shards: usize) -> Rows<(Bytes,)> {
    let shards = format!("{{0000000..{:07}}}.tar", shards - 1);
    Rows::<(Bytes,)>::tar(folder.join(shards)).columns(["cls"]).open().unwrap()
}

/// The shards have no headers, and most of the index is not there. So this fails if more is read than rows need.
#[test]
fn of_many_shards_only_what_rows_need_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (shards, samples) = (2000, 4000); // a smaller index would stay in memory
    let wanted = batch(shards * samples);
    write(folder.path(), shards, samples, &wanted);
    let rows = open(folder.path(), shards);
    assert_eq!((rows.len(), rows.there_is()[0].clone()), (shards * samples, ("cls".into(), "number".into())));
    for row in &wanted {
        assert_eq!(rows.get(*row).unwrap().0, "\0\0\0");
    }
    let other = (0..rows.len()).find(|row| wanted.iter().all(|wanted| wanted / samples != row / samples)).unwrap();
    let error = rows.source.read(other).unwrap_err();
    assert!(matches!(&error, DataError::Index { .. }), "{error}");
    assert!(error.to_string().contains(rows.place(other).0), "{error}");
}

fn mb(field: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1e3
}

/// What it costs to open very many shards whose index is saved, in a process of its own, and to read the first batch of a shuffled epoch:
/// JSON lines, a line a case. `TMPDIR` needs some gigabytes for inodes. `cargo test --release -- --ignored very_many --nocapture`.
#[test]
#[ignore = "a measurement"]
fn opening_very_many_tars() {
    const CASE: &str = "BURN_SHARDS_CASE";
    if let Ok(case) = env::var(CASE) {
        let words: Vec<&str> = case.splitn(5, ' ').collect();
        let [shards, samples, bytes, disk] = [0, 1, 2, 3].map(|word| words[word].parse::<usize>().unwrap());
        let (before, begun) = (mb("VmRSS"), Instant::now());
        let rows = open(Path::new(words[4]), shards);
        let (open_s, open_mb, peak_mb) = (begun.elapsed().as_secs_f64(), mb("VmRSS"), mb("VmHWM"));
        assert_eq!(rows.len(), shards * samples);
        let (wanted, begun) = (batch(rows.len()), Instant::now());
        wanted.iter().for_each(|row| assert_eq!(rows.get(*row).unwrap().0, "\0\0\0"));
        let (batch_s, all_mb) = (begun.elapsed().as_secs_f64(), mb("VmHWM"));
        let line = serde_json::json!({
            "bench": "index", "shards": shards, "samples": rows.len(), "open_s": open_s, "before_mb": before, "open_mb": open_mb,
            "open_peak_mb": peak_mb, "batch_s": batch_s, "peak_mb": all_mb, "index_bytes": bytes, "index_disk_bytes": disk,
        });
        println!("{line}");
        return;
    }
    for (shards, samples) in [(100_000, 10_000), (1_000_000, 1000), (64, 15_625_000)] {
        let folder = tempfile::tempdir().unwrap();
        let (bytes, disk) = write(folder.path(), shards, samples, &batch(shards * samples));
        let case = format!("{shards} {samples} {bytes} {disk} {}", folder.path().display());
        for _ in 0..3 {
            let test = ["--ignored", "--exact", "--nocapture", "tar::tests::many::opening_very_many_tars"];
            let done = Command::new(env::current_exe().unwrap()).args(test).env(CASE, &case).status().unwrap();
            assert!(done.success());
        }
    }
}
