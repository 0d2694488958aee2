//! Which pages an object has.

use super::disk::whole_blocks;
use crate::store::Object;
use std::ops::Range;

/// The bytes of a page. An object's last page may have fewer.
pub(super) const PAGE: u64 = 1 << 20;
/// The bytes of the checksum at the end of a page's file.
pub(super) const SUM: u64 = 4;

/// The pages of all objects of a set, numbered one after the other.
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

    /// The bytes of an object.
    pub(super) fn bytes(&self, object: usize) -> u64 {
        self.bytes[object]
    }

    /// The bytes that the pages of all objects take on a disk.
    pub(super) fn all_on_disk(&self) -> u64 {
        let of_object =
            |bytes: &u64| (bytes / PAGE).saturating_mul(on_disk(PAGE)).saturating_add(on_disk(bytes % PAGE));
        self.bytes.iter().map(of_object).fold(0, u64::saturating_add)
    }

    /// The pages of a part that is not empty.
    pub(super) fn of(&self, object: usize, part: &Range<u64>) -> Range<u64> {
        self.first[object] + part.start / PAGE..self.first[object] + part.end.div_ceil(PAGE)
    }

    /// The part of its object that a page has.
    pub(super) fn part(&self, object: usize, page: u64) -> Range<u64> {
        let start = (page - self.first[object]) * PAGE;
        start..start.saturating_add(PAGE).min(self.bytes[object])
    }
}

/// The bytes that a page of this length takes on a disk. An empty one has no file.
pub(super) fn on_disk(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { whole_blocks(bytes + SUM) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_objects_follow_each_other() {
        let object = |bytes| Object { name: "o".into(), bytes, tag: 0 };
        let layout = Layout::new(&[object(PAGE + 1), object(0), object(PAGE), object(7)]);
        assert_eq!((layout.all_on_disk(), on_disk(4092), on_disk(4093)), (2 * PAGE + 4 * 4096, 4096, 8192));
        assert_eq!((layout.of(0, &(5..PAGE + 1)), layout.of(2, &(0..PAGE)), layout.of(3, &(6..7))), (0..2, 2..3, 3..4));
        let parts = [(0, 0), (0, 1), (2, 2), (3, 3)].map(|(object, page)| layout.part(object, page));
        assert_eq!(parts, [0..PAGE, PAGE..PAGE + 1, 0..PAGE, 0..7]);
    }
}
