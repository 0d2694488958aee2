//! The pages of objects, and their files.

use super::{
    disk::whole_blocks,
    folder::{CacheSet, PAGES},
    ours,
};
use crate::{
    store::{Object, local::read_at},
    system::{files::PooledFile, locks::Mutex, replace::replace_by},
};
use crc32fast::Hasher as Crc;
use fnv::FnvBuildHasher;
use std::{collections::HashMap, fs, io, io::Write, ops::Range, path::PathBuf, sync::Arc};

/// The bytes of a page. An object's last page may have fewer.
pub const PAGE: u64 = 1 << 20;
/// The bytes of the checksum at the end of a page's file.
const SUM: u64 = 4;
/// The pages per folder. A folder is counted as a whole, so it must not have too many.
const FOLDER_PAGES: u64 = 128;

/// A page of an object: its number in the set, and its part of the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CachePage {
    pub(super) number: u64,
    pub(super) part: Range<u64>,
}

impl CachePage {
    pub(super) fn bytes(&self) -> u64 {
        self.part.end - self.part.start
    }
}

/// The bytes that a page of this length takes on a disk. An empty page has no file.
pub fn on_disk(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { whole_blocks(bytes + SUM) }
}

/// The bytes that the pages of all objects take on a disk.
pub(super) fn all_on_disk(objects: &[Object]) -> u64 {
    let of_object = |Object { bytes, .. }: &Object| {
        (bytes / PAGE).saturating_mul(on_disk(PAGE)).saturating_add(on_disk(bytes % PAGE))
    };
    objects.iter().map(of_object).fold(0, u64::saturating_add)
}

/// The pages of all objects of an open set, numbered consecutively, and their files.
#[derive(Debug)]
pub(super) struct CachePages {
    pub(super) set: CacheSet,
    /// The number of the first page of each object, and the bytes of the object.
    objects: Vec<(u64, u64)>,
    /// The pages that this reader has checked. Some of their files are open.
    pub(super) known: Mutex<HashMap<u64, Arc<PooledFile>, FnvBuildHasher>>,
}

impl CachePages {
    pub(super) fn new(set: CacheSet, objects: &[Object]) -> Self {
        let place = |next: &mut u64, object: &Object| {
            let first = *next;
            *next = first.saturating_add(object.bytes.div_ceil(PAGE));
            Some((first, object.bytes))
        };
        Self { set, objects: objects.iter().scan(0, place).collect(), known: Mutex::default() }
    }

    /// The bytes of an object.
    pub(super) fn object_bytes(&self, object: usize) -> u64 {
        self.objects[object].1
    }

    /// The page that has this byte of an object.
    pub(super) fn page(&self, object: usize, at: u64) -> CachePage {
        let ((first, bytes), start) = (self.objects[object], at / PAGE * PAGE);
        CachePage { number: first + at / PAGE, part: start..start.saturating_add(PAGE).min(bytes) }
    }

    /// The pages of a part that is not empty.
    pub(super) fn pages(&self, object: usize, part: &Range<u64>) -> impl Iterator<Item = CachePage> {
        (part.start / PAGE..part.end.div_ceil(PAGE)).map(move |page| self.page(object, page * PAGE))
    }

    fn path(&self, page: u64) -> PathBuf {
        self.set.folder.join(format!("{PAGES}{:x}/{page:x}", page / FOLDER_PAGES))
    }

    pub(super) fn is_known(&self, page: u64) -> bool {
        self.known.lock().contains_key(&page)
    }

    /// Whether a page has a file.
    pub(super) fn is_there(&self, page: u64) -> bool {
        fs::symlink_metadata(self.path(page)).is_ok()
    }

    /// Checks whether a page exists as it was written. A corrupt page is removed.
    pub(super) fn check(&self, page: &CachePage) -> io::Result<bool> {
        if self.is_known(page.number) {
            return Ok(true);
        }
        let (path, kept) = (self.path(page.number), Arc::<PooledFile>::default());
        let file = match kept.opened(|| ours::to_read(&path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file?,
        };
        let mut all = vec![0; (page.bytes() + SUM) as usize];
        if file.metadata()?.len() == all.len() as u64 {
            read_at(&file, 0, &mut all)?;
            let (bytes, sum) = all.split_at(all.len() - SUM as usize);
            if sum == checksum(page.number, bytes) {
                self.known.lock().insert(page.number, kept);
                return Ok(true);
            }
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(false), // another process may have removed it
        }
    }

    /// Reads from a known page, from a byte of its object up to the end of the page.
    pub(super) fn read(&self, page: &CachePage, start: u64, into: &mut [u8]) -> io::Result<usize> {
        let bytes = (page.part.end - start).min(into.len() as u64) as usize;
        let kept = self.known.lock().get(&page.number).map(Arc::clone).unwrap_or_default();
        let file = kept.opened(|| ours::to_read(&self.path(page.number)))?;
        read_at(&file, start - page.part.start, &mut into[..bytes])?;
        Ok(bytes)
    }

    /// Writes a page, which is then known.
    pub(super) fn write(&self, page: u64, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(page);
        path.parent().map_or(Ok(()), ours::inner)?;
        let write = |file: &mut fs::File| file.write_all(bytes).and_then(|()| file.write_all(&checksum(page, bytes)));
        replace_by(&path, ours::create, |error| error, write)?;
        self.known.lock().insert(page, Arc::default());
        Ok(())
    }
}

/// The end of a page's file. It includes the number, so that a page under another number is not accepted.
fn checksum(page: u64, bytes: &[u8]) -> [u8; SUM as usize] {
    let mut sum = Crc::new();
    sum.update(&page.to_le_bytes());
    sum.update(bytes);
    sum.finalize().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_objects_follow_each_other() {
        let (folder, object) = (tempfile::tempdir().unwrap(), |bytes| Object { name: "o".into(), bytes, tag: 0 });
        let objects = [object(PAGE + 1), object(0), object(PAGE), object(7)];
        assert_eq!((all_on_disk(&objects), on_disk(4092), on_disk(4093)), (2 * PAGE + 4 * 4096, 4096, 8192));
        let set = CacheSet::open(&folder.path().join("cache"), 1 << 20, "set", 0, false).unwrap();
        let all = CachePages::new(set, &objects);
        let pages = |object, part| all.pages(object, &part).map(|page| (page.number, page.part)).collect::<Vec<_>>();
        assert_eq!(pages(0, 5..PAGE + 1), [(0, 0..PAGE), (1, PAGE..PAGE + 1)]);
        assert_eq!((pages(2, 0..PAGE), pages(3, 6..7)), (vec![(2, 0..PAGE)], vec![(3, 0..7)]));
    }
}
