//! Counts what folders have on disk.

use super::{
    disk::{BLOCK, whole_blocks},
    stamp::stamp,
};
use crate::replace::TEMPORARY;
use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

/// What folders of files had when they were counted last. A folder that has not changed since is not read again.
#[derive(Debug, Default)]
pub(super) struct Tally(HashMap<PathBuf, ([u64; 2], u64)>);

impl Tally {
    /// The bytes of all files in a folder, and in the folders in it. A folder takes a block. What goes meanwhile counts nothing.
    /// A page that is being written has no place in the count: whoever writes it has counted it.
    pub(super) fn bytes(&mut self, folder: &Path) -> u64 {
        self.of(folder).unwrap_or(0)
    }

    fn of(&mut self, folder: &Path) -> io::Result<u64> {
        // Before the folder is read, so that a change meanwhile is seen later.
        let stamp = stamp(&fs::symlink_metadata(folder)?);
        if let Some((counted, bytes)) = self.0.get(folder)
            && stamp == Some(*counted)
        {
            return Ok(*bytes);
        }
        let (mut bytes, mut has_folders) = (BLOCK, false);
        for entry in fs::read_dir(folder)?.flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                has_folders = true;
                bytes += self.bytes(&entry.path());
            } else if Path::new(&entry.file_name()).extension().is_none_or(|end| end != TEMPORARY) {
                bytes += whole_blocks(meta.len());
            }
        }
        if let Some(stamp) = stamp.filter(|_| !has_folders) {
            self.0.insert(folder.into(), (stamp, bytes));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_is_counted_again() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, mut tally) = (folder.path().join("inner"), Tally::default());
        fs::create_dir(&inner).unwrap();
        assert_eq!(tally.bytes(folder.path()), 2 * BLOCK);
        for n in 1..30 {
            fs::write(inner.join(n.to_string()), vec![0; 5000]).unwrap();
            fs::write(inner.join("part.tmp"), "part of a page").unwrap();
            assert_eq!(tally.bytes(folder.path()), (2 + 2 * n) * BLOCK);
        }
        fs::remove_dir_all(&inner).unwrap();
        assert_eq!((tally.bytes(folder.path()), tally.bytes(&inner)), (BLOCK, 0));
    }
}
