//! The files of a set's pages.

use super::{
    layout::{Layout, SUM},
    ours,
    set::{PAGES, Set},
};
use crate::{files::Kept, store::local::read_at};
use crc32fast::Hasher as Crc;
use fnv::FnvBuildHasher;
use parking_lot::RwLock;
use std::{collections::HashMap, fs, io, io::Write, path::PathBuf, sync::Arc};

/// The pages in a folder. It is counted as a whole, so they are not too many.
const MANY: u64 = 128;

/// The pages of an open set.
#[derive(Debug)]
pub(super) struct Pages {
    pub(super) layout: Layout,
    pub(super) set: Set,
    /// The pages that are good, as this reader has seen. Some of their files are open.
    pub(super) known: RwLock<HashMap<u64, Arc<Kept>, FnvBuildHasher>>,
}

impl Pages {
    fn path(&self, page: u64) -> PathBuf {
        self.set.folder().join(format!("{PAGES}{:x}", page / MANY)).join(format!("{page:x}"))
    }

    pub(super) fn is_known(&self, page: u64) -> bool {
        self.known.read().contains_key(&page)
    }

    /// Whether a page has a file.
    pub(super) fn is_there(&self, page: u64) -> bool {
        self.is_known(page) || fs::symlink_metadata(self.path(page)).is_ok()
    }

    /// Looks whether a page is there as it was written. One that is not is removed.
    pub(super) fn check(&self, object: usize, page: u64) -> io::Result<bool> {
        if self.is_known(page) {
            return Ok(true);
        }
        let (path, kept, part) = (self.path(page), Arc::<Kept>::default(), self.layout.part(object, page));
        let file = match kept.file(|| ours::to_read(&path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file?,
        };
        let mut all = vec![0; (part.end - part.start + SUM) as usize];
        if file.metadata()?.len() == all.len() as u64 {
            read_at(&file, 0, &mut all)?;
            let (bytes, sum) = all.split_at(all.len() - SUM as usize);
            if sum == checksum(page, bytes) {
                self.known.write().insert(page, kept);
                return Ok(true);
            }
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(false), // another process may have removed it
        }
    }

    /// Reads from a page that is known, from this byte of its object up to the end of the page.
    pub(super) fn read(&self, object: usize, start: u64, into: &mut [u8]) -> io::Result<usize> {
        let page = self.layout.of(object, &(start..start + 1)).start;
        let part = self.layout.part(object, page);
        let bytes = (part.end - start).min(into.len() as u64) as usize;
        let kept = self.known.read().get(&page).map(Arc::clone).unwrap_or_default();
        let file = kept.file(|| ours::to_read(&self.path(page)))?;
        read_at(&file, start - part.start, &mut into[..bytes])?;
        Ok(bytes)
    }

    /// Writes a page, which is known then.
    pub(super) fn write(&self, page: u64, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(page);
        path.parent().map_or(Ok(()), ours::inner)?;
        let write = |file: &mut fs::File| file.write_all(bytes).and_then(|()| file.write_all(&checksum(page, bytes)));
        ours::replace(&path, |error| error, write)?;
        self.known.write().insert(page, Arc::default());
        Ok(())
    }
}

/// The end of a page's file. A page under another number is not believed.
fn checksum(page: u64, bytes: &[u8]) -> [u8; SUM as usize] {
    let mut sum = Crc::new();
    sum.update(&page.to_le_bytes());
    sum.update(bytes);
    sum.finalize().to_le_bytes()
}
