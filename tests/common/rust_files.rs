//! The Rust files of a folder, for the tests that read the sources.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Adds all Rust files below a folder to `found`.
pub(crate) fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}
