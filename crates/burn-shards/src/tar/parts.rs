//! The index of one shard: where its parts are, in 16 bytes for each part.
//!
//! A part is a file of the tar that belongs to a sample. The first eight bytes have the place of its header (in blocks, 40 bits), the
//! number of blocks from there to its data (8 bits), its extension (15 bits), and whether it is the first part of its sample (1 bit). The
//! other eight have its size in bytes.

use super::header::BLOCK;
use bytes::{Buf, Bytes};
use std::sync::{Arc, OnceLock};

const BYTES: usize = 16;
const BLOCKS_BITS: u32 = 40;
const DATA_BITS: u32 = 8;
const EXTENSION_BITS: u32 = 15;
/// The most extensions that a shard may have.
pub(super) const EXTENSIONS: usize = 1 << EXTENSION_BITS;

/// A file that belongs to a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TarPart {
    /// Where its first header is, in bytes. Headers with a long name come before the actual header.
    pub(super) header: u64,
    /// Where its data are.
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// The number of its extension.
    pub(super) extension: usize,
    pub(super) first: bool,
}

impl TarPart {
    /// The saved form of the part. An error if its numbers are too large.
    pub(super) fn words(self) -> Result<[u64; 2], &'static str> {
        let (blocks, data) = (self.header / BLOCK, self.start.saturating_sub(self.header) / BLOCK);
        if blocks >> BLOCKS_BITS != 0 || self.extension >= EXTENSIONS {
            return Err("it has too many bytes or kinds of files for an index");
        }
        if data >> DATA_BITS != 0 {
            return Err("the name of a file is too long");
        }
        let extension = (self.extension as u64) << (BLOCKS_BITS + DATA_BITS);
        Ok([blocks | data << BLOCKS_BITS | extension | u64::from(self.first) << 63, self.bytes])
    }
}

/// The parts of a shard, sample by sample.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) extensions: Vec<Arc<str>>,
    words: Bytes,
    /// The first part of each sample, and the number of all parts.
    firsts: Vec<u32>,
    /// How many parts there are with each extension. Counted when an error needs it.
    counts: OnceLock<Vec<usize>>,
}

impl Parts {
    /// Reads a saved index. `None` if it is damaged.
    pub(super) fn read(mut saved: Bytes) -> Option<Self> {
        let count = saved.try_get_u32_le().ok()?;
        let mut extensions = Vec::new();
        for _ in 0..count {
            let length = saved.try_get_u32_le().ok()? as usize;
            if length > saved.len() {
                return None;
            }
            extensions.push(std::str::from_utf8(&saved.split_to(length)).ok()?.into());
        }
        if !saved.len().is_multiple_of(BYTES) {
            return None;
        }
        let mut parts = Self { extensions, words: saved, firsts: Vec::new(), counts: OnceLock::new() };
        for number in 0..parts.count() {
            let part = parts.numbered(number);
            if part.extension >= parts.extensions.len() || (number == 0 && !part.first) {
                return None;
            }
            if part.first {
                parts.firsts.push(u32::try_from(number).ok()?);
            }
        }
        parts.firsts.push(u32::try_from(parts.count()).ok()?);
        Some(parts)
    }

    /// The number of all parts.
    fn count(&self) -> usize {
        self.words.len() / BYTES
    }

    /// The number of samples.
    pub(super) fn samples(&self) -> usize {
        self.firsts.len() - 1
    }

    /// How many samples have a part with this extension.
    pub(super) fn with(&self, extension: usize) -> usize {
        let count = || {
            let mut counts = vec![0; self.extensions.len()];
            (0..self.count()).for_each(|number| counts[self.numbered(number).extension] += 1);
            counts
        };
        self.counts.get_or_init(count)[extension]
    }

    /// The parts of a sample, in the order of the tar.
    pub(super) fn of(&self, sample: usize) -> impl Iterator<Item = TarPart> {
        (self.firsts[sample]..self.firsts[sample + 1]).map(|number| self.numbered(number as usize))
    }

    fn numbered(&self, number: usize) -> TarPart {
        let mut entry = &self.words[number * BYTES..(number + 1) * BYTES];
        let (word, bytes) = (entry.get_u64_le(), entry.get_u64_le());
        let bits = |from: u32, count: u32| word >> from & ((1 << count) - 1);
        let header = bits(0, BLOCKS_BITS) * BLOCK;
        TarPart {
            header,
            start: header + bits(BLOCKS_BITS, DATA_BITS) * BLOCK,
            bytes,
            extension: bits(BLOCKS_BITS + DATA_BITS, EXTENSION_BITS) as usize,
            first: word >> 63 == 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tar::samples::Samples;

    fn built(samples: &[&[&str]]) -> Parts {
        let (mut built, mut header) = (Samples::default(), 0);
        for (key, names) in samples.iter().enumerate() {
            for name in *names {
                built.add(format!("{key}.{name}").as_bytes(), header, header + 1536, header + 7).unwrap();
                header += 10 * BLOCK;
            }
        }
        Parts::read(built.end().into()).unwrap()
    }

    #[test]
    fn samples_have_as_many_parts_or_not() {
        for samples in [
            &[&["jpg", "cls"][..], &["jpg", "cls"]][..],
            &[&["jpg"], &["jpg", "cls"]],
            &[&["jpg", "cls"], &["jpg"]],
            &[],
        ] {
            let (parts, mut header) = (built(samples), 0);
            assert_eq!(parts.samples(), samples.len());
            for (sample, names) in samples.iter().enumerate() {
                let of: Vec<TarPart> = parts.of(sample).collect();
                assert_eq!(of.iter().map(|part| &*parts.extensions[part.extension]).collect::<Vec<_>>(), *names);
                for part in of {
                    assert_eq!((part.header, part.start, part.bytes), (header, header + 1536, header + 7));
                    header += 10 * BLOCK;
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let part = TarPart { header: 0, start: 512, bytes: 1, extension: 0, first: true };
        assert!(TarPart { header: (1 << 49) - 512, start: (1 << 49) + 512, ..part }.words().is_ok());
        assert!(TarPart { header: 1 << 49, start: (1 << 49) + 512, ..part }.words().is_err());
        assert!(TarPart { start: 256 * 512, ..part }.words().is_err());
        assert!(TarPart { extension: 1 << 15, ..part }.words().is_err());
        assert!(Parts::read(Bytes::from_static(&[1, 0, 0, 0, 9, 0, 0, 0, b'a'])).is_none());
    }
}
