//! How much one reader may write before the folder is counted again.

use super::pages::{PAGE, on_disk};
use std::io;

/// A reader counts the folder again after writing at most this number of pages.
const PAGES: u64 = 64;
/// A reader fills at most `1 / SHARE` of the remaining space before it counts again. Other readers may do so at the same time.
const SHARE: u64 = 8;

/// How much of the limit is left for pages, as far as one reader knows.
#[derive(Debug)]
pub(super) struct Room {
    limit: u64,
    /// The bytes of all sets at the last count, plus what this reader has written since.
    held: u64,
    written: u64,
    /// The bytes that may be written before the next count.
    share: u64,
}

impl Room {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, held: limit, written: 1, share: 0 }
    }

    /// Whether the folder has space for these bytes. `count` returns what all sets have on disk. A reader that has written nothing since
    /// its last count does not count again.
    pub(super) fn has(&mut self, bytes: u64, count: impl FnOnce() -> io::Result<u64>) -> io::Result<bool> {
        let is_due = self.written.saturating_add(bytes) > self.share || self.held.saturating_add(bytes) > self.limit;
        if self.written > 0 && is_due {
            (self.held, self.written) = (count()?, 0);
            let share = self.limit.saturating_sub(self.held) / SHARE;
            self.share = share.clamp(on_disk(PAGE), PAGES * on_disk(PAGE));
        }
        Ok(self.held.saturating_add(bytes) <= self.limit)
    }

    /// Notes that a page was written, for which there was space.
    pub(super) fn wrote(&mut self, bytes: u64) {
        (self.held, self.written) = (self.held + bytes, self.written + bytes);
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
            if !room.has(page, count).unwrap() {
                return (held / page, counts.get(), longest);
            }
            since = if counts.get() > before { 1 } else { since + 1 };
            longest = longest.max(since);
            held += page;
            room.wrote(page);
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
        assert!(!room.has(11, || Ok(0)).unwrap());
        assert!(!room.has(11, || panic!("it was counted")).unwrap());
        assert!(room.has(4, || panic!("it was counted")).unwrap());
        room.wrote(4);
        assert!(!room.has(7, || Ok(4)).unwrap() && room.has(6, || Ok(4)).unwrap());
    }

    /// Room that there was when a page was asked for is not reserved: it must still be there when the page is written.
    #[test]
    fn others_that_fill_the_folder_meanwhile_are_passed_by_64_pages_at_most() {
        let (page, mut room, mut own) = (on_disk(PAGE), Room::new(1000 * on_disk(PAGE)), 0);
        assert!(room.has(400 * page, || Ok(0)).unwrap());
        while room.has(page, || Ok((999 + own) * page)).unwrap() {
            room.wrote(page);
            own += 1;
        }
        assert_eq!(own, 64);
    }
}
