//! Files that other people's tools wrote, value by value: Python writes them with what is in them, and `Rows`, `Image`, `Coco`,
//! `Audio` and `ChatTemplate` read them. `.ci/differential` does both.
//!
//! One test for each reader. Each reads all files of `BURN_PINNED_DIFFERENTIAL`, and lists all that differ.

mod chats;
mod coco;
mod exact;
mod known;
mod manifest;
mod picture;
mod rows;
mod sounds;

use manifest::{Entry, entries};

const FOLDER: &str = "BURN_PINNED_DIFFERENTIAL";

/// Checks all entries of a reader. Each that differs has one line in the message.
fn check(reader: &str, check: impl Fn(&Entry) -> Result<(), String>) {
    let folder = std::env::var_os(FOLDER).unwrap_or_else(|| panic!("{FOLDER} names no folder: run .ci/differential"));
    let all = entries(folder.as_ref());
    assert!(!all.is_empty(), "the manifest is empty");
    let entries: Vec<Entry> = all.into_iter().filter(|entry| entry.reader == reader).collect();
    let differ = |entry: &Entry| check(entry).err().map(|error| format!("{}: {error}\n    {}", entry.name, entry.how));
    let differing: Vec<String> = entries.iter().filter_map(differ).collect();
    println!("{reader}: {} of {} are equal", entries.len() - differing.len(), entries.len());
    assert!(differing.is_empty(), "{} of {} differ\n{}", differing.len(), entries.len(), differing.join("\n"));
}

#[test]
#[ignore = "needs files that Python writes: run .ci/differential"]
fn parquet() {
    check("parquet", rows::check);
}

#[test]
#[ignore = "needs files that Python writes: run .ci/differential"]
fn json_lines() {
    check("jsonl", rows::check);
}

#[test]
#[ignore = "needs files that Python writes: run .ci/differential"]
fn tar() {
    check("tar", rows::check);
}

#[test]
#[ignore = "needs files that Python writes: run .ci/differential"]
fn mds() {
    check("mds", rows::check);
}

#[test]
#[ignore = "needs files that Python writes: run .ci/differential"]
fn pictures() {
    check("picture", picture::check);
}

#[test]
#[ignore = "needs files that Python writes: run .ci/differential"]
fn coco_annotations() {
    check("coco", coco::check);
}

#[test]
#[ignore = "needs files that Python writes: run .ci/differential"]
fn sounds() {
    check("sound", sounds::check);
}

#[test]
#[ignore = "needs files that Python writes: run .ci/differential"]
fn chats() {
    check("chat", chats::check);
}
