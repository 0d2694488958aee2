//! How much space files take on a disk, and how much is free.

use crate::{store::local::SAME, system::replace::TEMPORARY};
use std::{
    collections::HashMap,
    fs::{self, DirEntry},
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Disks allocate whole blocks. Most file systems have blocks of this size, in bytes.
pub(super) const BLOCK: u64 = 4096;
/// The bytes that the small files of a set may take.
pub(crate) const SMALL_FILES: u64 = 64 << 10;

/// The bytes that a file of this length takes on a disk.
pub(crate) fn whole_blocks(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX)
}

/// The free bytes on the disk of a folder, if the system reports them.
pub(super) fn free(_folder: &Path) -> io::Result<u64> {
    #[cfg(unix)]
    return Ok(rustix::fs::statvfs(_folder).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize))?);
    #[cfg(not(unix))]
    Ok(u64::MAX)
}

pub(super) fn is_half_written(file: &DirEntry) -> bool {
    file.path().extension().is_some_and(|end| end == TEMPORARY)
}

/// The bytes of all files in a folder, and in the folders in it. A folder takes a block. `counted` has the earlier results for folders of
/// files. A folder that has not changed since is not read again.
pub(super) fn count(folder: &Path, counted: &mut HashMap<PathBuf, (SystemTime, u64)>) -> u64 {
    // This is before the folder is read, so that a change meanwhile is noticed next time.
    let Ok(changed) = fs::symlink_metadata(folder).and_then(|meta| meta.modified()) else { return 0 };
    if let Some((_, bytes)) = counted.get(folder).filter(|(before, _)| *before == changed) {
        return *bytes;
    }
    let (mut bytes, mut has_folders) = (BLOCK, false);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => (bytes, has_folders) = (bytes + count(&entry.path(), counted), true),
            Ok(meta) if !is_half_written(&entry) => bytes += whole_blocks(meta.len()),
            _ => {} // it is gone, or the reader that writes it has counted it
        }
    }
    if !has_folders && changed.elapsed().is_ok_and(|age| age > SAME) {
        counted.insert(folder.into(), (changed, bytes));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_is_counted_again() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, mut counted) = (folder.path().join("inner"), HashMap::new());
        fs::create_dir(&inner).unwrap();
        assert_eq!(count(folder.path(), &mut counted), 2 * BLOCK);
        for n in 1..30 {
            fs::write(inner.join(n.to_string()), vec![0; 5000]).unwrap();
            fs::write(inner.join("part.tmp"), "part of a page").unwrap();
            assert_eq!(count(folder.path(), &mut counted), (2 + 2 * n) * BLOCK);
        }
        fs::remove_dir_all(&inner).unwrap();
        assert_eq!((count(folder.path(), &mut counted), count(&inner, &mut counted)), (BLOCK, 0));
    }
}
