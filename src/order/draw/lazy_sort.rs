//! Sorts only as much as is asked for.

/// The values in order, sorted one block at a time: incremental quicksort (R. Paredes, G. Navarro, "Optimal Incremental
/// Sorting", ALENEX 2006).
///
/// The first value costs time in proportion to the length. All values together cost as much as a sort. Values that are
/// skipped are never sorted.
pub(crate) struct LazySort<T> {
    values: Vec<T>,
    /// The place of the next value to return.
    at: usize,
    /// Values before this were returned already, or are in their place.
    sorted: usize,
    /// The ends of the parts after `sorted`, the nearest part last. No value of a part is greater than a value of a
    /// later part.
    ends: Vec<usize>,
}

/// The number of values that are sorted at once. They fit in the cache.
const BLOCK: usize = 1 << 12;

impl<T: Ord> LazySort<T> {
    pub(crate) fn new(values: Vec<T>) -> Self {
        Self { at: 0, sorted: 0, ends: vec![values.len()], values }
    }

    /// Splits the values until the block around `place` is small, and sorts that block.
    fn sort_around(&mut self, place: usize) {
        let mut start = self.sorted;
        while let Some(&end) = self.ends.last() {
            if end <= place {
                start = end;
                self.ends.pop();
            } else if end - start > BLOCK {
                let middle = start + (end - start) / 2;
                self.values[start..end].select_nth_unstable(middle - start);
                self.ends.push(middle);
            } else {
                self.values[start..end].sort_unstable();
                self.sorted = end;
                self.ends.pop();
                return;
            }
        }
    }
}

impl<T: Ord + Copy> Iterator for LazySort<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.nth(0)
    }

    fn nth(&mut self, n: usize) -> Option<T> {
        let place = self.at.saturating_add(n).min(self.values.len());
        if place >= self.sorted {
            self.sort_around(place);
        }
        self.at = place.saturating_add(1).min(self.values.len());
        self.values.get(place).copied()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.values.len() - self.at;
        (left, Some(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_sorts_and_skips(
            values in prop::collection::vec(0u32..50_000, 0..5 * BLOCK),
            skips in prop::collection::vec(prop_oneof![Just(0), 0..2 * BLOCK], 0..8),
        ) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let (mut lazy, mut at) = (LazySort::new(values), 0);
            for skip in skips {
                prop_assert_eq!(lazy.nth(skip), sorted.get(at + skip).copied());
                at = (at + skip + 1).min(sorted.len());
                prop_assert_eq!(lazy.size_hint().0, sorted.len() - at);
            }
            prop_assert!(lazy.eq(sorted[at..].iter().copied()));
        }
    }
}
