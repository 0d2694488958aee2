//! How much one reader may write before the folder is counted again.

use super::layout::{PAGE, on_disk};
use std::io;

/// A folder is counted again after so many pages of one's own at the latest.
const PAGES: u64 = 64;
/// Of the room that is left, one reader takes this part at once. Others may take theirs at the same time.
const SHARE: u64 = 8;

/// What is left of a limit, as far as one reader knows.
#[derive(Debug)]
pub(super) struct Room {
    limit: u64,
    /// The bytes that may be written before the next count.
    left: u64,
    /// The bytes of pages that have a place and are not there yet. No count sees them.
    coming: u64,
    /// Whether the reader has taken places since the last count, so that another one tells more.
    is_due: bool,
}

impl Room {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, left: 0, coming: 0, is_due: true }
    }

    /// Takes a place for a page. `count` counts what all sets have on disk. False if there is none.
    pub(super) fn take(&mut self, bytes: u64, count: impl FnOnce() -> io::Result<u64>) -> io::Result<bool> {
        if self.left < bytes && self.is_due {
            let left = self.limit.saturating_sub(count()?.saturating_add(self.coming));
            self.left = left.min((left / SHARE).clamp(on_disk(PAGE), PAGES * on_disk(PAGE)));
            self.is_due = false;
        }
        let has_place = self.left >= bytes;
        if has_place {
            (self.left, self.coming, self.is_due) = (self.left - bytes, self.coming + bytes, true);
        }
        Ok(has_place)
    }

    /// A page that had a place has been written, or will not be.
    pub(super) fn done(&mut self, bytes: u64) {
        (self.coming, self.is_due) = (self.coming.saturating_sub(bytes), true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Fills a folder page by page, and returns how often it was counted, and the pages of the longest share.
    fn fill(limit: u64) -> (u64, u64, u64) {
        let (page, mut room, mut held) = (on_disk(PAGE), Room::new(limit), 0);
        let (counts, mut since, mut longest) = (Cell::new(0), 0, 0);
        loop {
            let before = counts.get();
            let count = || {
                counts.set(counts.get() + 1);
                Ok(held)
            };
            if !room.take(page, count).unwrap() {
                return (held / page, counts.get(), longest);
            }
            since = if counts.get() > before { 1 } else { since + 1 };
            longest = longest.max(since);
            held += page;
            room.done(page);
        }
    }

    #[test]
    fn a_folder_is_counted_after_64_pages_and_sooner_near_the_limit() {
        let (pages, counts, longest) = fill(10_000 * on_disk(PAGE) + 5);
        assert_eq!((pages, longest), (10_000, 64));
        assert!((10_000 / 64..10_000 / 64 + 60).contains(&counts), "{counts}");
        let (pages, _, longest) = fill(16 * on_disk(PAGE));
        assert_eq!((pages, longest), (16, 2));
        assert_eq!(fill(0).0, 0);
    }

    #[test]
    fn a_reader_that_has_written_nothing_since_does_not_count_again() {
        let mut room = Room::new(10);
        assert!(!room.take(11, || Ok(0)).unwrap());
        assert!(!room.take(11, || panic!("it was counted")).unwrap());
        assert!(room.take(4, || Ok(0)).unwrap());
        room.done(4);
        assert!(!room.take(7, || Ok(4)).unwrap() && room.take(6, || Ok(4)).unwrap());
    }
}
