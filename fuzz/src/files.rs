//! Inputs as files, since `Rows` read files.

use std::{fs, path::Path};

/// Writes an input to a file of this name in a folder of its own, in memory where there is such a file system, and calls.
/// No index of another input is there.
///
/// # Panics
/// If the folder cannot be made.
pub fn as_file<O>(name: &str, parts: &[&[u8]], call: impl FnOnce(&Path) -> O) -> O {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, parts.concat()).expect("a file");
    call(&path)
}
