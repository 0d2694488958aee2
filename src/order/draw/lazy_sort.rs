//! Sorts only as much as is asked for.

/// Values in order, sorted one block at a time: incremental quicksort (R. Paredes, G. Navarro, "Optimal Incremental
/// Sorting", ALENEX 2006).
///
/// The first value costs time in proportion to the length. All values together cost as much as a sort. Several readers may
/// each be at a place of their own.
pub(crate) struct LazySort<T> {
    values: Vec<T>,
    /// Values before this are in their place.
    sorted: usize,
    /// The ends of the parts after `sorted`, the nearest part last. No value of a part is greater than a value of a
    /// later part.
    ends: Vec<usize>,
}

/// The number of values that are sorted at once. They fit in the cache.
const BLOCK: usize = 1 << 12;

impl<T: Ord + Copy> LazySort<T> {
    pub(crate) fn new(values: Vec<T>) -> Self {
        Self { sorted: 0, ends: vec![values.len()], values }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns the value at a place of the order.
    ///
    /// # Panics
    /// If there is no such place.
    pub(crate) fn at(&mut self, place: usize) -> T {
        while place >= self.sorted && self.sorted < self.values.len() {
            self.sort_next();
        }
        self.values[place]
    }

    /// Splits the values until the next block is small, and sorts that block.
    fn sort_next(&mut self) {
        while let Some(&end) = self.ends.last() {
            let start = self.sorted;
            if end - start > BLOCK {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_sorts_for_any_reader(
            values in prop::collection::vec(0u32..50_000, 0..5 * BLOCK),
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let mut lazy = LazySort::new(values);
            prop_assert_eq!(lazy.len(), sorted.len());
            for place in places.into_iter().filter(|_| !sorted.is_empty()).map(|place| place.index(sorted.len())) {
                prop_assert_eq!(lazy.at(place), sorted[place]);
            }
            prop_assert!((0..sorted.len()).all(|place| lazy.at(place) == sorted[place]));
        }
    }
}
