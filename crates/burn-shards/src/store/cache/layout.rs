//! Which pages an object has.

use super::disk::whole_blocks;
use crate::store::Object;
use std::ops::Range;

/// The bytes of a page. An object's last page may have fewer.
pub(super) const PAGE: u64 = 1 << 20;
/// What a file system notes of where a page is. It is in blocks that count as the file's.
const EXTENT: u64 = 32;

/// The pages of all objects of a set, numbered one after the other. Page `n` is at `n * PAGE` of the data file.
#[derive(Debug)]
pub(super) struct Layout {
    /// The first page of each object, and the end of the last one.
    first: Vec<u64>,
    bytes: Vec<u64>,
}

impl Layout {
    pub(super) fn new(objects: &[Object]) -> Self {
        let mut first = vec![0];
        let mut end = 0u64;
        for object in objects {
            end = end.saturating_add(object.bytes.div_ceil(PAGE));
            first.push(end);
        }
        Self { first, bytes: objects.iter().map(|object| object.bytes).collect() }
    }

    /// The number of all pages.
    pub(super) fn pages(&self) -> u64 {
        self.first.last().copied().unwrap_or(0)
    }

    /// The bytes of an object.
    pub(super) fn bytes(&self, object: usize) -> u64 {
        self.bytes[object]
    }

    /// What all objects take on disk.
    pub(super) fn all_on_disk(&self) -> u64 {
        let extents = self.pages().saturating_mul(EXTENT);
        self.bytes.iter().fold(extents, |all, bytes| all.saturating_add(whole_blocks(*bytes)))
    }

    /// The pages of a part that is not empty.
    pub(super) fn of(&self, object: usize, part: &Range<u64>) -> Range<u64> {
        self.first[object] + part.start / PAGE..self.first[object] + part.end.div_ceil(PAGE)
    }

    /// Where a page of an object ends there.
    pub(super) fn end(&self, object: usize, page: u64) -> u64 {
        ((page + 1 - self.first[object]) * PAGE).min(self.bytes[object])
    }

    /// What pages of an object have of it.
    pub(super) fn part(&self, object: usize, pages: &Range<u64>) -> Range<u64> {
        (pages.start - self.first[object]) * PAGE..self.end(object, pages.end - 1)
    }

    /// Where a byte of an object is in the data file.
    pub(super) fn place(&self, object: usize, at: u64) -> u64 {
        self.first[object] * PAGE + at
    }

    /// The bytes of a page.
    pub(super) fn length(&self, page: u64) -> u64 {
        let object = self.first.partition_point(|first| *first <= page) - 1;
        self.bytes[object].saturating_sub((page - self.first[object]) * PAGE).min(PAGE)
    }

    /// What a page takes on disk.
    pub(super) fn on_disk(&self, page: u64) -> u64 {
        whole_blocks(self.length(page)) + EXTENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_objects_follow_each_other() {
        let object = |bytes| Object { name: "o".into(), bytes, tag: 0 };
        let layout = Layout::new(&[object(PAGE + 1), object(0), object(PAGE), object(7)]);
        assert_eq!((layout.pages(), layout.all_on_disk()), (4, 2 * PAGE + 2 * 4096 + 4 * EXTENT));
        assert_eq!((0..4).map(|page| layout.on_disk(page)).sum::<u64>(), layout.all_on_disk());
        assert_eq!([0, 1, 2, 3].map(|page| layout.length(page)), [PAGE, 1, PAGE, 7]);
        assert_eq!((layout.of(0, &(5..PAGE + 1)), layout.of(2, &(0..PAGE)), layout.of(3, &(6..7))), (0..2, 2..3, 3..4));
        assert_eq!((layout.part(0, &(0..2)), layout.part(0, &(1..2))), (0..PAGE + 1, PAGE..PAGE + 1));
        assert_eq!((layout.end(0, 0), layout.end(0, 1), layout.place(3, 2)), (PAGE, PAGE + 1, 3 * PAGE + 2));
    }
}
