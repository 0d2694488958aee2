//! The index of one shard: where its parts are, in 16 bytes for each part.
//!
//! A part is a file of the tar that belongs to a sample. The first eight bytes say where its header is (in blocks, 40
//! bits), how many blocks behind that its data begin (8 bits), which extension it has (15 bits), and whether it is the
//! first of its sample (1 bit). The other eight say how many bytes it has.

use super::header::BLOCK;
use bytes::{Buf, Bytes};
use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, OnceLock},
};

const BYTES: usize = 16;
const BLOCKS_BITS: u32 = 40;
const DATA_BITS: u32 = 8;
const EXTENSION_BITS: u32 = 15;
/// The most extensions that a shard may have.
pub(super) const EXTENSIONS: usize = 1 << EXTENSION_BITS;

/// A file that belongs to a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TarPart {
    /// Where its first header is, in bytes. Headers with a long name come before the header proper.
    pub(super) header: u64,
    /// Where its data are.
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// The number of its extension.
    pub(super) extension: usize,
    pub(super) first: bool,
}

/// Collects the parts of a shard.
#[derive(Debug, Default)]
pub(super) struct PartsBuilder {
    extensions: Vec<Box<str>>,
    numbers: HashMap<Box<str>, usize>,
    words: Vec<u8>,
}

impl PartsBuilder {
    /// Returns the number of an extension.
    pub(super) fn extension(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.extensions.len();
        self.extensions.push(name.into());
        self.numbers.insert(name.into(), number);
        number
    }

    pub(super) fn add(&mut self, part: TarPart) -> Result<(), &'static str> {
        let (blocks, data) = (part.header / BLOCK, part.start.saturating_sub(part.header) / BLOCK);
        if blocks >> BLOCKS_BITS != 0 || part.extension >= EXTENSIONS {
            return Err("it has too many bytes or kinds of files for an index");
        }
        if data >> DATA_BITS != 0 {
            return Err("the name of a file is too long");
        }
        let word = blocks
            | data << BLOCKS_BITS
            | (part.extension as u64) << (BLOCKS_BITS + DATA_BITS)
            | u64::from(part.first) << 63;
        self.words.extend(word.to_le_bytes());
        self.words.extend(part.bytes.to_le_bytes());
        Ok(())
    }

    /// The index as it is saved: the number of extensions, each with its length, and the parts.
    pub(super) fn end(self) -> Vec<u8> {
        let mut all = (self.extensions.len() as u32).to_le_bytes().to_vec();
        for name in &self.extensions {
            all.extend((name.len() as u32).to_le_bytes());
            all.extend(name.as_bytes());
        }
        all.extend(self.words);
        all
    }
}

/// The parts of a shard, sample by sample.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) extensions: Vec<Arc<str>>,
    words: Bytes,
    samples: usize,
    /// The number of parts of each sample, if all have as many. Then nothing else says where a sample begins.
    each: Option<usize>,
    /// Else the first part of each sample, and the number of all parts.
    firsts: Vec<u32>,
    /// How many parts there are with each extension. Counted when an error tells it.
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
        let mut parts =
            Self { extensions, words: saved, samples: 0, each: None, firsts: Vec::new(), counts: OnceLock::new() };
        let (mut firsts, mut all) = (Vec::new(), 0);
        for number in 0..parts.words.len() / BYTES {
            let part = parts.numbered(number);
            if part.extension >= parts.extensions.len() || (number == 0 && !part.first) {
                return None;
            }
            if part.first {
                firsts.push(u32::try_from(number).ok()?);
            }
            all = number + 1;
        }
        parts.samples = firsts.len();
        let each = all.checked_div(firsts.len()).unwrap_or(1);
        if firsts.iter().enumerate().all(|(sample, first)| *first as usize == sample * each)
            && firsts.len() * each == all
        {
            parts.each = Some(each);
        } else {
            firsts.push(u32::try_from(all).ok()?);
            parts.firsts = firsts;
        }
        Some(parts)
    }

    /// The number of samples.
    pub(super) fn samples(&self) -> usize {
        self.samples
    }

    /// How many samples have a part with this extension.
    pub(super) fn with(&self, extension: usize) -> usize {
        let count = || {
            let mut counts = vec![0; self.extensions.len()];
            (0..self.words.len() / BYTES).for_each(|number| counts[self.numbered(number).extension] += 1);
            counts
        };
        self.counts.get_or_init(count)[extension]
    }

    /// The parts of a sample, in the order of the tar.
    pub(super) fn of(&self, sample: usize) -> impl Iterator<Item = TarPart> {
        let range: Range<usize> = match self.each {
            Some(each) => sample * each..(sample + 1) * each,
            None => self.firsts[sample] as usize..self.firsts[sample + 1] as usize,
        };
        range.map(|number| self.numbered(number))
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

    fn built(samples: &[&[&str]]) -> Parts {
        let mut builder = PartsBuilder::default();
        let mut header = 0;
        for sample in samples {
            for (place, name) in sample.iter().enumerate() {
                let extension = builder.extension(name);
                let part = TarPart { header, start: header + 1536, bytes: header + 7, extension, first: place == 0 };
                builder.add(part).unwrap();
                header += 10 * BLOCK;
            }
        }
        Parts::read(builder.end().into()).unwrap()
    }

    #[test]
    fn samples_have_as_many_parts_or_not() {
        for (samples, each) in [
            (&[&["jpg", "cls"][..], &["jpg", "cls"]][..], Some(2)),
            (&[&["jpg"], &["jpg", "cls"]], None),
            (&[&["jpg", "cls"], &["jpg"]], None),
            (&[], Some(1)),
        ] {
            let parts = built(samples);
            assert_eq!((parts.samples(), parts.each), (samples.len(), each));
            let mut header = 0;
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
        let add = |part| PartsBuilder::default().add(part);
        assert!(add(TarPart { header: (1 << 49) - 512, start: (1 << 49) + 512, ..part }).is_ok());
        assert!(add(TarPart { header: 1 << 49, start: (1 << 49) + 512, ..part }).is_err());
        assert!(add(TarPart { start: 256 * 512, ..part }).is_err());
        assert!(add(TarPart { extension: 1 << 15, ..part }).is_err());
        assert!(Parts::read(Bytes::from_static(&[1, 0, 0, 0, 9, 0, 0, 0, b'a'])).is_none());
    }
}
