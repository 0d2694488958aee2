//! A random order of `0..len` without a table.

use std::array;

/// The number of rounds. With 8, no test tells the order from a Fisher-Yates shuffle at any length from 64 on; with 4, they do.
const ROUNDS: usize = 12;
/// Places that are computed side by side, because the steps of one place wait for each other.
const LANES: usize = 8;

/// A permutation of `0..len` by a cipher: each index costs the same, and only the keys are kept.
///
/// It is the generalized Feistel cipher of J. Black and P. Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, on a grid of
/// `rows` rows of 2^`bits` places. The grid may have up to a row more than `len` places. An index beyond `len` is enciphered again (their
/// cycle walking), which happens for at most one place in 2^(`bits` - 1).
///
/// The numbers do not depend on the platform. They are part of the format: a seed gives the same order in each version.
#[derive(Debug, Clone)]
pub struct Permutation {
    keys: [[u64; 2]; ROUNDS / 2],
    len: u64,
    bits: u32,
    rows: u64,
}

impl Permutation {
    /// A permutation of `len` indices, from 1 to 2^63. `key` returns the keys of the rounds, which must be random.
    pub fn new(len: u64, mut key: impl FnMut() -> u64) -> Self {
        let bits = len.max(1).ilog2().div_ceil(2);
        Self { keys: array::from_fn(|_| [key(), key()]), len, bits, rows: len.div_ceil(1 << bits) }
    }

    /// The number of indices.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no indices.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the index at a place.
    pub fn at(&self, place: u64) -> u64 {
        let [index] = self.enciphered([place]);
        self.walked(index)
    }

    /// Returns the indices at eight places from `first` on, in half the time of [`at`](Self::at). Those beyond the last place have no
    /// meaning.
    pub fn eight(&self, first: u64) -> [u64; LANES] {
        let last = self.len.saturating_sub(1);
        self.enciphered(array::from_fn(|lane| last.min(first + lane as u64))).map(|index| self.walked(index))
    }

    /// Returns the place of an index.
    pub fn place_of(&self, index: u64) -> u64 {
        let mut place = self.deciphered(index);
        while place >= self.len {
            place = self.deciphered(place);
        }
        place
    }

    fn walked(&self, mut index: u64) -> u64 {
        while index >= self.len {
            [index] = self.enciphered([index]);
        }
        index
    }

    #[inline]
    fn enciphered<const N: usize>(&self, places: [u64; N]) -> [u64; N] {
        let mask = (1 << self.bits) - 1;
        let (mut rows, mut columns) = (places.map(|place| place >> self.bits), places.map(|place| place & mask));
        for [first, second] in &self.keys {
            for (row, column) in rows.iter_mut().zip(&columns) {
                let sum = *row + self.below_rows(mixed(*column, *first));
                *row = sum.min(sum.wrapping_sub(self.rows)); // modulo `rows`
            }
            for (row, column) in rows.iter().zip(&mut columns) {
                *column = column.wrapping_add(mixed(*row, *second).rotate_left(self.bits)) & mask;
            }
        }
        array::from_fn(|lane| rows[lane] << self.bits | columns[lane])
    }

    fn deciphered(&self, index: u64) -> u64 {
        let mask = (1 << self.bits) - 1;
        let (mut row, mut column) = (index >> self.bits, index & mask);
        for [first, second] in self.keys.iter().rev() {
            column = column.wrapping_sub(mixed(row, *second).rotate_left(self.bits)) & mask;
            let difference = row.wrapping_sub(self.below_rows(mixed(column, *first)));
            row = difference.min(difference.wrapping_add(self.rows)); // modulo `rows`
        }
        row << self.bits | column
    }

    fn below_rows(&self, mixed: u64) -> u64 {
        ((u128::from(mixed) * u128::from(self.rows)) >> 64) as u64
    }
}

/// The function of a round. Its upper bits are used, because they are the well mixed ones.
fn mixed(half: u64, key: u64) -> u64 {
    let product = (half ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product ^ (product >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permutation(len: u64, seed: u64) -> Permutation {
        let mut state = seed;
        Permutation::new(len, || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mixed(state, seed)
        })
    }

    #[test]
    fn short_ones_have_each_index_once() {
        for len in (1..300).chain([4095, 4096, 4097, 65_535, 65_537, 100_000]) {
            let (permutation, mut had) = (permutation(len, len + 7), vec![false; len as usize]);
            for place in 0..len {
                let index = permutation.at(place);
                assert!(!std::mem::replace(&mut had[index as usize], true), "{index} of {len} comes twice");
                assert_eq!(permutation.place_of(index), place, "of {len}");
            }
        }
    }

    #[test]
    fn long_ones_are_their_inverse() {
        for len in [(1 << 20) + 1, 1_000_000_000, 100_000_000_000, (1 << 40) - 1, 1 << 40, (1 << 62) + 12_345, 1 << 63]
        {
            let permutation = permutation(len, 1);
            for place in (0..2000u64).map(|n| (u128::from(n) * u128::from(len - 1) / 1999) as u64) {
                let index = permutation.at(place);
                assert!(index < len && permutation.place_of(index) == place, "{place} of {len}");
            }
        }
    }

    #[test]
    fn eight_at_once_are_the_same() {
        for len in [1, 5, 8, 1000, 1 << 33] {
            let permutation = permutation(len, 3);
            for first in [0, 1, 17, 800, 995].into_iter().filter(|first| *first < len) {
                let places = (first..len).take(8);
                assert!(places.zip(permutation.eight(first)).all(|(place, index)| permutation.at(place) == index));
            }
        }
    }
}
