//! A random order of all samples: a table if they are few, otherwise a permutation that is computed.

use super::packed::reserved;
use burn_augment::KeyedRng;
use burn_shards::for_loader::Permutation;
use rand::{Rng, seq::SliceRandom};
use std::sync::OnceLock;

/// The longest order that is a table. It is part of the format: the orders of longer data sets are computed in another way. A table takes
/// time and memory when an epoch begins; after that its indices come several times as fast.
const LONGEST_TABLE: usize = 1 << 22;

/// A random order of `0..len`. It is the same on every machine.
#[derive(Debug)]
pub(crate) enum Shuffle {
    /// By R. Durstenfeld, "Algorithm 235: Random permutation", CACM 7(7), 1964.
    Table {
        order: Vec<u32>,
        places: OnceLock<Vec<u32>>,
    },
    Computed(Permutation),
}

impl Shuffle {
    /// # Panics
    /// As [`reserved`].
    pub(crate) fn new(len: usize, rng: &mut KeyedRng) -> Self {
        Self::up_to(LONGEST_TABLE, len, rng)
    }

    /// As [`new`](Self::new), with another length from which on no table is made. It is part of the format too.
    pub(crate) fn up_to(longest_table: usize, len: usize, rng: &mut KeyedRng) -> Self {
        if len > longest_table {
            return Self::Computed(Permutation::new(len as u64, || rng.next_u64()));
        }
        let mut order = reserved(len);
        order.extend(0..len as u32);
        order.shuffle(rng);
        Self::Table { order, places: OnceLock::new() }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Table { order, .. } => order.len(),
            Self::Computed(permutation) => permutation.len() as usize,
        }
    }

    /// Returns the index at a place.
    pub(crate) fn at(&self, place: usize) -> usize {
        match self {
            Self::Table { order, .. } => order[place] as usize,
            Self::Computed(permutation) => permutation.at(place as u64) as usize,
        }
    }

    /// Returns the place of an index.
    pub(crate) fn place_of(&self, index: usize) -> usize {
        match self {
            Self::Table { order, places } => {
                let invert = || {
                    let mut places = reserved(order.len());
                    places.resize(order.len(), 0);
                    order.iter().zip(0..).for_each(|(index, place)| places[*index as usize] = place);
                    places
                };
                places.get_or_init(invert)[index] as usize
            }
            Self::Computed(permutation) => permutation.place_of(index as u64) as usize,
        }
    }

    /// Returns the indices in order. Skipping takes no time.
    pub(crate) fn indices(self) -> Indices {
        Indices { shuffle: self, next: 0, found: [0; 8], left: 0 }
    }
}

/// The indices of a shuffle in order.
#[derive(Debug)]
pub(crate) struct Indices {
    shuffle: Shuffle,
    /// The next place.
    next: usize,
    /// The last `left` of these indices come next.
    found: [u64; 8],
    left: usize,
}

impl Iterator for Indices {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.next >= self.shuffle.len() {
            return None;
        }
        let index = match &self.shuffle {
            Shuffle::Table { order, .. } => order[self.next] as usize,
            Shuffle::Computed(permutation) => {
                if self.left == 0 {
                    (self.found, self.left) = (permutation.eight(self.next as u64), self.found.len());
                }
                self.left -= 1;
                self.found[self.found.len() - 1 - self.left] as usize
            }
        };
        self.next += 1;
        Some(index)
    }

    fn nth(&mut self, n: usize) -> Option<usize> {
        if n < self.left || n == 0 {
            (self.next, self.left) = (self.next + n, self.left.saturating_sub(n));
            return self.next();
        }
        // Processes that share an epoch skip the indices of the others, which need not be computed.
        (self.next, self.left) = (self.next.saturating_add(n), 0);
        let place = self.next;
        self.next = place.saturating_add(1);
        (place < self.shuffle.len()).then(|| self.shuffle.at(place))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.shuffle.len().saturating_sub(self.next);
        (left, Some(left))
    }
}

/// Its size hint is exact.
impl ExactSizeIterator for Indices {}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: usize = 1000;

    fn shuffle(len: usize, epoch: usize) -> Shuffle {
        Shuffle::up_to(LONGEST, len, &mut KeyedRng::for_order(1, epoch))
    }

    #[test]
    fn each_index_has_one_place_on_both_sides_of_the_longest_table() {
        for len in [0, 1, 2, 7, LONGEST, LONGEST + 1, LONGEST + 300, 100_003] {
            let shuffle = shuffle(len, 3);
            assert_eq!((shuffle.len(), matches!(shuffle, Shuffle::Table { .. })), (len, len <= LONGEST));
            let order: Vec<usize> = (0..len).map(|place| shuffle.at(place)).collect();
            assert!(order.iter().enumerate().all(|(place, index)| shuffle.place_of(*index) == place));
            assert!(shuffle.indices().eq(order.iter().copied()));
            let mut sorted = order;
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..len));
        }
    }

    #[test]
    fn skipping_changes_nothing() {
        for len in [LONGEST, 66_000] {
            let order: Vec<usize> = shuffle(len, 0).indices().collect();
            for step in [1, 2, 3, 7, 8, 9, 64] {
                assert!(
                    shuffle(len, 0).indices().step_by(step).eq(order.iter().copied().step_by(step)),
                    "{len} {step}"
                );
            }
            let mut mixed = shuffle(len, 0).indices();
            let mut place = 0;
            for n in [0, 3, 1, 0, 0, 11, 2, 100, 0, 5] {
                assert_eq!(mixed.nth(n), Some(order[place + n]));
                place += n + 1;
                assert_eq!(mixed.size_hint().0, len - place);
            }
            assert_eq!((mixed.nth(len), mixed.next(), mixed.nth(usize::MAX)), (None, None, None));
        }
    }
}
