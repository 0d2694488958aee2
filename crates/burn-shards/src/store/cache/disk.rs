//! How much of a disk files take, and how much is free.

use std::{io, path::Path};

/// A disk gives whole blocks. Most file systems have blocks of this size.
pub(super) const BLOCK: u64 = 4096;
/// What the small files of a set may take.
pub(crate) const SMALL: u64 = 64 << 10;

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
