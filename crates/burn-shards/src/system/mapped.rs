//! Files that are mapped into memory, read-only. The only unsafe code of this room.
//!
//! A mapped file is read by plain loads, which cannot return errors. If another process truncates the file, a load after its new end raises
//! a signal (SIGBUS on Unix), which ends the process. The same happens if a disk or a network share goes away. If another process writes to
//! the file, a load sees the old bytes or the new ones.
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
    /// Maps a regular file, and closes its descriptor.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        files::regular(path)?;
        let file = files::open(path)?;
        // SAFETY: the map is private to this value, and it gives out shared slices only, so nothing in this process writes to it. No type
        // with invalid values is made of its bytes: all values of the integers and floats that are read from it are valid. The user must
        // ensure that no other process writes to the file or truncates it, as the docs say.
        let map = unsafe { Mmap::map(&file) }?;
        Ok(Self { map })
    }

    /// The bytes of the file, with its length at `open`.
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
