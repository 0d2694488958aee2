//! How much one reader may write before the folder is counted again.

use super::pages::{PAGE, on_disk};
use std::io;

/// A folder is counted again after 64 pages of one's own at the latest.
const PAGES: u64 = 64;
/// Of the room that is left, one reader takes this part at once. Others may take theirs at the same time.
const SHARE: u64 = 8;

/// What is left of a limit, as far as one reader knows.
#[derive(Debug)]
pub(super) struct Room {
    limit: u64,
    /// The bytes that all sets had when they were counted, and those that this reader has written since.
    held: u64,
    /// The bytes that may be written before the next count. No count of others sees them before.
    share: u64,
}

impl Room {
    /// The room of a folder that was just counted.
    pub(super) fn new(limit: u64, held: u64) -> Self {
        let share = limit.saturating_sub(held) / SHARE;
        Self { limit, held, share: share.clamp(on_disk(PAGE), PAGES * on_disk(PAGE)) }
    }

    /// Whether there is a place for so many bytes.
    pub(super) fn has(&self, bytes: u64) -> bool {
        self.held.saturating_add(bytes) <= self.limit
    }

    /// Takes the place of a page, if there is one. `count` counts what all sets have on disk.
    pub(super) fn take(&mut self, bytes: u64, count: impl FnOnce() -> io::Result<u64>) -> io::Result<bool> {
        if self.has(bytes) && bytes > self.share {
            *self = Self::new(self.limit, count()?);
        }
        let has = self.has(bytes);
        if has {
            (self.held, self.share) = (self.held + bytes, self.share.saturating_sub(bytes));
        }
        Ok(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Fills a folder page by page, and returns how often it was counted, and the pages of the longest share.
    fn fill(limit: u64) -> (u64, u64, u64) {
        let (page, mut room, mut held) = (on_disk(PAGE), Room::new(limit, 0), 0);
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
    fn a_folder_that_is_full_is_not_counted_again() {
        let mut room = Room::new(10, 0);
        for _ in 0..2 {
            assert!(!room.has(11) && !room.take(11, || panic!("it was counted")).unwrap());
        }
        assert!(room.take(4, || panic!("it was counted")).unwrap());
        assert!(!room.has(7) && room.has(6));
    }

    /// A place that a page had when it was asked for is nobody's. It gets one when it has come.
    #[test]
    fn others_that_fill_the_folder_meanwhile_are_passed_by_64_pages_at_most() {
        let (page, mut own) = (on_disk(PAGE), 0);
        let mut room = Room::new(1000 * page, 0);
        assert!(room.has(400 * page));
        while room.take(page, || Ok((999 + own) * page)).unwrap() {
            own += 1;
        }
        assert_eq!(own, 64);
    }
}
