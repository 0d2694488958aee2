//! The short text that stands for a long table in the `Debug` text of a sampler.

use fnv::FnvHasher;
use std::{fmt, hash::Hasher};

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
        let (mut len, mut hasher) = (0, FnvHasher::default());
        for word in words {
            len += 1;
            hasher.write(&word.to_le_bytes());
        }
        Self { len, hash: hasher.finish() }
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
}
