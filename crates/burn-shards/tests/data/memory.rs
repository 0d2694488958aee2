//! Memory stays flat over many epochs of data that do not fit.
#![cfg(target_os = "linux")]

use crate::{apart::apart, golden::golden};
use burn::data::dataset::Dataset;
use burn_shards::Rows;
use bytes::Bytes;
use rand::{SeedableRng, rngs::ChaCha8Rng, seq::SliceRandom};
use std::fs;

/// What may be kept of the 16 MiB.
const LIMIT: u64 = 1600 << 10;

/// Bytes of this process in memory.
fn resident() -> i64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<i64>().unwrap() * 4096
}

/// Other tests of this program take and leave memory meanwhile, so this one has a process of its own.
#[test]
fn fifty_epochs_in_any_order_take_no_more_memory_than_five() {
    apart("memory::child", &[]);
}

/// 16 MiB in pages of 32 KiB, of which a tenth may be kept.
#[test]
#[ignore = "run by the test above"]
fn child() {
    let index = tempfile::tempdir().unwrap();
    let open = |memory| {
        let rows = Rows::<(Bytes, i64)>::parquet(golden("numbers/large.parquet"));
        rows.columns(["bytes", "label"]).memory(memory).index_dir(index.path()).open().unwrap()
    };
    let rows = open(LIMIT);
    let play = |rows: &Rows<(Bytes, i64)>, epoch| {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(epoch));
        for index in order {
            let (bytes, label) = rows.get(index).unwrap();
            let is_right = bytes.len() == 16 << 10 && bytes.iter().all(|byte| *byte == (index % 251) as u8);
            assert!(label == index as i64 && is_right, "row {index}");
        }
    };
    let before = resident();
    (0..5).for_each(|epoch| play(&rows, epoch));
    let after_five = resident();
    (5..50).for_each(|epoch| play(&rows, epoch));
    let after_fifty = resident();
    assert!(after_five - before < 8 << 20, "{} bytes in five epochs", after_five - before);
    assert!(after_fifty - after_five < 1 << 20, "{} bytes more", after_fifty - after_five);

    // What it would be without a limit shows here: so the measure is one.
    let whole = open(64 << 20);
    play(&whole, 0);
    assert!(resident() - after_fifty > 12 << 20, "{} bytes of 16 MiB", resident() - after_fifty);
}
