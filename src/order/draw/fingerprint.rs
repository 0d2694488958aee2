//! The short text that stands for a long table in the `Debug` text of a sampler.

use std::fmt;

/// The length of a table and a hash of it: FNV-1a of 64 bits over its words, little-endian (G. Fowler, L. C. Noll,
/// K.-P. Vo, D. Eastlake, "The FNV Non-Cryptographic Hash Algorithm"). The hash is the same on every machine and in
/// every version, unlike `Hash`.
#[derive(Clone, Copy)]
pub(crate) struct Fingerprint {
    len: usize,
    hash: u64,
}

impl Fingerprint {
    pub(crate) fn of(words: impl Iterator<Item = u64>) -> Self {
        let (mut len, mut hash) = (0, BASIS);
        for word in words {
            len += 1;
            hash = fnv1a(hash, &word.to_le_bytes());
        }
        Self { len, hash }
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of hash {:016x}", self.len, self.hash)
    }
}

/// The hash of nothing.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_published_test_vectors() {
        assert_eq!(fnv1a(BASIS, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(BASIS, b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn it_shows_length_and_hash() {
        let text = |words: &[u64]| format!("{:?}", Fingerprint::of(words.iter().copied()));
        assert_eq!(text(&[]), "0 of hash cbf29ce484222325");
        assert!(text(&[1, 2]).starts_with("2 of hash "));
        assert_ne!(text(&[1, 2]), text(&[2, 1]));
    }
}
