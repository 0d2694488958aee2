//! Inputs as files, since `Rows` read files.

use std::{fs, path::Path};

/// Writes an input to a file of this name in a folder of its own, and calls.
///
/// # Panics
/// If the folder cannot be made.
pub fn as_file<O>(name: &str, parts: &[&[u8]], call: impl FnOnce(&Path) -> O) -> O {
    as_files(&[(name, &parts.concat())], |folder| call(&folder.join(name)))
}

/// Writes files of these names to a folder of their own, in memory where there is such a file system, and calls. No index of
/// another input is there.
///
/// # Panics
/// If the folder cannot be made.
pub fn as_files<O>(files: &[(&str, &[u8])], call: impl FnOnce(&Path) -> O) -> O {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder");
    files.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).expect("a file"));
    call(folder.path())
}

/// What is between two files of an input that is several files.
pub const BETWEEN: &[u8] = b"\xff\xfe\n";

/// The files of an input. There is at least one.
pub fn cut(mut input: &[u8]) -> Vec<&[u8]> {
    let mut files = Vec::new();
    while let Some(at) = input.windows(BETWEEN.len()).position(|some| some == BETWEEN) {
        files.push(&input[..at]);
        input = &input[at + BETWEEN.len()..];
    }
    files.push(input);
    files
}
