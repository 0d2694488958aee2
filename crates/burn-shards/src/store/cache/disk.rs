//! How much of a disk files take, how much is free, and whether files have changed.

use crate::replace::TEMPORARY;
use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// A disk gives whole blocks. Most file systems have blocks of this size.
pub(super) const BLOCK: u64 = 4096;
/// What the small files of a set may take.
pub(crate) const SMALL: u64 = 64 << 10;
/// Two changes within this time may have the same time: some disks note whole seconds.
pub(super) const SAME: Duration = Duration::from_secs(2);

/// The bytes that a file of this length takes on a disk.
pub(crate) fn whole_blocks(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX)
}

/// The bytes that are free on the disk of a folder, if the system says so.
#[cfg(unix)]
pub(super) fn free(path: &Path) -> io::Result<Option<u64>> {
    let disk = rustix::fs::statvfs(path)?;
    Ok(Some(disk.f_bavail.saturating_mul(disk.f_frsize)))
}

#[cfg(not(unix))]
pub(super) fn free(_: &Path) -> io::Result<Option<u64>> {
    Ok(None)
}

/// When a file or a folder was changed last. Nobody can set this time.
#[cfg(unix)]
pub(super) fn changed(meta: &fs::Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    let since = Duration::new(meta.ctime().try_into().ok()?, meta.ctime_nsec().try_into().ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

/// There nothing is known to be the same.
#[cfg(not(unix))]
pub(super) fn changed(_: &fs::Metadata) -> Option<SystemTime> {
    None
}

/// What folders of files had when they were counted last. A folder that has not changed since is not read again.
#[derive(Debug, Default)]
pub(super) struct Tally(HashMap<PathBuf, (SystemTime, u64)>);

impl Tally {
    /// The bytes of all files in a folder, and in the folders in it. A folder takes a block. What goes meanwhile counts nothing.
    /// A page that is being written has no place in the count: whoever writes it has counted it.
    pub(super) fn bytes(&mut self, folder: &Path) -> u64 {
        // Before the folder is read, so that a change meanwhile is seen later.
        let Ok(meta) = fs::symlink_metadata(folder) else { return 0 };
        let changed = changed(&meta);
        if let Some((counted, bytes)) = self.0.get(folder)
            && Some(*counted) == changed
        {
            return *bytes;
        }
        let (mut bytes, mut has_folders) = (BLOCK, false);
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                has_folders = true;
                bytes += self.bytes(&entry.path());
            } else if entry.path().extension().is_none_or(|end| end != TEMPORARY) {
                bytes += whole_blocks(meta.len());
            }
        }
        if let Some(changed) = changed.filter(|time| !has_folders && time.elapsed().is_ok_and(|age| age > SAME)) {
            self.0.insert(folder.into(), (changed, bytes));
        }
        bytes
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
