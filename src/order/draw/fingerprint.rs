//! A short fingerprint of a long table, for the `Debug` text of a sampler.

use fnv::FnvHasher;
use std::{array, fmt, hash::Hasher};

/// The length of a table and a hash of it: FNV-1a of 64 bits over its words, little-endian (G. Fowler, L. C. Noll,
/// K.-P. Vo, D. Eastlake, "The FNV Non-Cryptographic Hash Algorithm"). The hash is the same on every machine and in
/// every version, unlike `Hash`.
#[derive(Clone, Copy)]
pub(crate) struct Fingerprint {
    /// The number of words, or of 32-bit numbers.
    pub(crate) len: usize,
    pub(crate) hash: u64,
}

/// A table of 32-bit numbers is hashed in this many lanes.
const LANES: usize = 8;
/// The fractional bits of pi, made odd.
const FACTOR: u64 = 0x243f_6a88_85a3_08d3;

impl Fingerprint {
    pub(crate) fn of(words: impl Iterator<Item = u64>) -> Self {
        let (mut len, mut hasher) = (0, FnvHasher::default());
        for word in words {
            len += 1;
            hasher.write(&word.to_le_bytes());
        }
        Self { len, hash: hasher.finish() }
    }

    /// A fast fingerprint: a table may have a hundred million numbers, and each process start computes it. Each lane takes every eighth
    /// pair of numbers and multiplies. The two words of the product are combined, so that each bit affects all later ones.
    pub(crate) fn of_table(table: &[u32]) -> Self {
        let mut lanes: [u64; LANES] = array::from_fn(|lane| lane as u64);
        let (whole, rest) = table.as_chunks::<{ 2 * LANES }>();
        let last = array::from_fn(|place| rest.get(place).copied().unwrap_or(0));
        for numbers in whole.iter().chain([&last]) {
            for (lane, pair) in lanes.iter_mut().zip(numbers.chunks_exact(2)) {
                let product = u128::from(*lane ^ u64::from(pair[0]) ^ (u64::from(pair[1]) << 32)) * u128::from(FACTOR);
                *lane = product as u64 ^ (product >> 64) as u64;
            }
        }
        Self { len: table.len(), ..Self::of(lanes.into_iter()) }
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of hash {:016x}", self.len, self.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_length_and_hash() {
        let text = |words: &[u64]| format!("{:?}", Fingerprint::of(words.iter().copied()));
        assert_eq!(text(&[]), "0 of hash cbf29ce484222325");
        assert!(text(&[1, 2]).starts_with("2 of hash "));
        assert_ne!(text(&[1, 2]), text(&[2, 1]));
    }

    /// Saved states contain the hash, so it must not change.
    #[test]
    fn each_number_of_a_table_counts() {
        let table: Vec<u32> = (0..1000).collect();
        let hash = |table: &[u32]| Fingerprint::of_table(table).hash;
        assert_eq!(format!("{:?}", Fingerprint::of_table(&table)), "1000 of hash 014e37d2e7f50d04");
        let mut seen = std::collections::HashSet::from([hash(&table)]);
        for place in 0..table.len() {
            for bit in [0, 1, 15, 31] {
                let mut other = table.clone();
                other[place] ^= 1 << bit;
                assert!(seen.insert(hash(&other)), "bit {bit} of number {place}");
            }
            let mut other = table.clone();
            other.swap(place, (place + 16) % 1000);
            assert!(seen.insert(hash(&other)), "number {place} in another place");
        }
    }
}
