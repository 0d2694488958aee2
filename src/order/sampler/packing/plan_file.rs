//! Saves plans in a folder, so that another process need not make them again.

use super::plan::PackingPlan;
use crate::{
    observe::warn,
    order::draw::{Fingerprint, VERSION},
};
use std::{
    fs,
    hash::{BuildHasher, RandomState},
    io,
    path::{Path, PathBuf},
};

/// The prefix of the names of plan files.
const NAME: &str = "burn-pinned.plan-";
/// How many plans are kept in a folder: the newest ones.
const KEPT: usize = 4;

/// Returns a hash of everything that a plan depends on, including the version of this crate and of its orders, because another
/// version may pack differently.
pub(super) fn key(of: &str) -> u64 {
    Fingerprint::of(of.bytes().chain(env!("CARGO_PKG_VERSION").bytes()).map(u64::from).chain([u64::from(VERSION)])).hash
}

fn path(folder: &Path, key: u64) -> PathBuf {
    folder.join(format!("{NAME}{key:016x}"))
}

/// The checksum of a plan, which is the last word of its file. It differs on a machine with the other byte order.
fn checksum(key: u64, words: &[u64]) -> u64 {
    Fingerprint::of(words.iter().copied().chain([key])).hash
}

/// Returns the plan if it was saved.
pub(super) fn read(folder: &Path, key: u64, windows: usize) -> Option<PackingPlan> {
    let path = path(folder, key);
    let bytes = fs::read(&path).ok()?;
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let whole = words.split_last().filter(|(sum, plan)| **sum == checksum(key, plan));
    let plan = whole.and_then(|(_, plan)| PackingPlan::of_words(plan, windows));
    if plan.is_none() {
        warn(&format!("{} is damaged, or is no plan of these documents: it is made again", path.display()));
    }
    plan
}

/// Saves the plan, and removes old ones. The file is written under another name and then renamed, so that no process reads an incomplete
/// file.
pub(super) fn save(folder: &Path, key: u64, plan: &PackingPlan) -> io::Result<()> {
    let mut words = plan.words();
    words.push(checksum(key, &words));
    fs::create_dir_all(folder)?;
    let temporary = folder.join(format!("{NAME}{:016x}.tmp", RandomState::new().hash_one(key)));
    fs::write(&temporary, bytemuck::cast_slice(&words)).and_then(|()| fs::rename(&temporary, path(folder, key)))?;
    let plans = fs::read_dir(folder)?.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(NAME));
    let mut all: Vec<_> =
        plans.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    all.sort();
    // Another process may remove the same files.
    all.iter().rev().skip(KEPT).for_each(|(_, path)| drop(fs::remove_file(path)));
    Ok(())
}
