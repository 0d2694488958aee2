//! Files that are mapped into memory, to read them only. The only unsafe code of this room.
//!
//! A mapped file is read by plain loads. So what happens to the file shows in them, and cannot be an error: if another
//! process makes the file shorter, a load behind its new end is a signal (SIGBUS on Unix), which ends the process. The
//! same is true of a disk or a network share that goes away. If another process writes to the file, a load sees the old
//! bytes or the new ones.
#![expect(unsafe_code)]

use crate::system::files;
use memmap2::Mmap;
use std::{io, path::Path};

/// A whole file, mapped read-only. It starts at the start of a page.
#[derive(derive_more::Debug)]
pub(crate) struct MappedFile {
    #[debug("{} bytes", map.len())]
    map: Mmap,
}

impl MappedFile {
    /// Maps a regular file. Its descriptor is closed again.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        files::regular(path)?;
        let file = files::open(path)?;
        // SAFETY: the map is private to this value, and it gives out shared slices only, so nothing in this process
        // writes to it. No type with invalid values is made of its bytes: all values of the integers that are read from it
        // are valid. That nobody else writes to the file or makes it shorter is up to the user, as the docs say.
        let map = unsafe { Mmap::map(&file) }?;
        Ok(Self { map })
    }

    /// The bytes of the file, as long as it was when it was opened.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_byte_for_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let bytes: Vec<u8> = (0..100_000).map(|n| (n % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let mapped = MappedFile::open(&path).unwrap();
        assert_eq!(mapped.bytes(), bytes);
        assert!(mapped.bytes().as_ptr().addr().is_multiple_of(4096), "a map starts at a page");
    }

    #[test]
    fn an_empty_file_has_no_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty");
        std::fs::write(&path, []).unwrap();
        assert!(MappedFile::open(&path).unwrap().bytes().is_empty());
    }

    #[test]
    fn a_folder_and_a_missing_file_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(MappedFile::open(folder.path()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(MappedFile::open(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
