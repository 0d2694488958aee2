//! What a kept data set takes: its rows, and a few batches while it is read.
#![cfg(target_os = "linux")]

use crate::{
    apart::apart,
    common::{Mischief, Numbers, Show, Shown, device},
};
use burn_pinned::{Error, PinnedDataLoader, PinnedDataLoaderBuilder};
use std::{fs, sync::Arc};

const ROWS: usize = 16 << 10;
const BATCH: usize = 256;
const WIDTH: usize = 4088; // and a number of 8 bytes
const MIB: usize = 1 << 20;
/// All rows.
const KEPT: usize = 64;
/// Four batches, the rows that are gathered at once (8 MiB), and what threads and tests take.
const MORE: usize = 16;

/// Mebibytes of this process in memory: now (`VmRSS`), or the most of them so far (`VmHWM`).
fn resident(what: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.trim_matches([':', ' ', '\t', 'k', 'B']).parse::<usize>().unwrap() / 1024
}

fn keep(numbers: Numbers) -> Result<Arc<PinnedDataLoader<Shown>>, Error> {
    let builder = PinnedDataLoaderBuilder::new(Show { width: WIDTH }).batch_size(BATCH).num_workers(2);
    builder.pinned_limit(2 * BATCH * (WIDTH + 8)).set_device(device()).shuffle(1).build_kept(numbers)
}

/// Other tests of this program take and leave memory meanwhile, so this one has a process of its own.
#[test]
fn the_peak_is_what_is_kept_and_a_few_batches() {
    apart("kept_memory::child", &[]);
}

#[test]
#[ignore = "run by the test above"]
fn child() {
    assert_eq!(ROWS * (WIDTH + 8) / MIB, KEPT);
    keep(Numbers::new(8 * BATCH)).unwrap().iter().for_each(drop); // what is loaded and allocated for ever
    let before = resident("VmRSS");
    let error = keep(Numbers::new(ROWS).with(ROWS - 1, Mischief::Error)).unwrap_err();
    assert!(error.place().is_some_and(|place| place.index == Some(ROWS - 1)), "{error}");
    let after = resident("VmRSS");
    assert!(after < before + MORE, "{after} MiB after an error at the last sample, {before} before");

    let loader = keep(Numbers::new(ROWS)).unwrap();
    let (now, most) = (resident("VmRSS"), resident("VmHWM"));
    assert!(now >= before + KEPT - 1, "{now} MiB, {before} before: the rows are in memory");
    assert!(most < before + KEPT + MORE, "{most} MiB at most, {before} before");

    let copy = loader.slice(0, ROWS / 2).to_device(&device());
    for loader in [&*copy, &*loader] {
        assert!(loader.iter().all(|batch| batch.unwrap().numbers.len() == BATCH));
    }
    let most = resident("VmHWM");
    assert!(most < before + KEPT + MORE, "{most} MiB at most: copies share the rows");
    drop(loader);
    assert!(resident("VmRSS") >= before + KEPT - 1, "a copy needs them");
    drop(copy);
    let after = resident("VmRSS");
    assert!(after < before + MORE, "{after} MiB at the end, {before} before");
}
