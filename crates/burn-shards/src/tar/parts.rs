//! The index of one shard: where its parts are, in 16 bytes for each part, and 4 bytes for each sample before them.
//!
//! A part is a file of the tar that belongs to a sample. The first eight bytes have the place of its header (in blocks, 40 bits), the
//! number of blocks from there to its data (8 bits), and its extension (15 bits). The other eight have its size in bytes. A sample has the
//! number of its first part. Behind the last sample is the number of all parts.

use super::header::BLOCK;
use crate::{error::DataError, source::index::IndexPart};
use bytes::{Buf, Bytes};
use std::{ops::Range, sync::Arc};

/// The bytes of a part, and of the number of a sample's first part.
const BYTES: u64 = 16;
const FIRST: u64 = 4;
/// The number of samples of a run.
const RUN: usize = 4096;
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
        Ok([blocks | data << BLOCKS_BITS | extension, self.bytes])
    }

    /// Reads a saved part.
    fn read(saved: &mut &[u8]) -> Option<Self> {
        let (word, bytes) = (saved.try_get_u64_le().ok()?, saved.try_get_u64_le().ok()?);
        let bits = |from: u32, count: u32| word >> from & ((1 << count) - 1);
        let header = bits(0, BLOCKS_BITS) * BLOCK;
        Some(Self {
            header,
            start: header + bits(BLOCKS_BITS, DATA_BITS) * BLOCK,
            bytes,
            extension: bits(BLOCKS_BITS + DATA_BITS, EXTENSION_BITS) as usize,
        })
    }
}

/// The extensions of a shard, each with its length in 32 bits. `None` if the list is damaged.
pub(super) fn extensions(mut saved: Bytes) -> Option<Vec<Arc<str>>> {
    let mut extensions = Vec::new();
    while !saved.is_empty() {
        let length = saved.try_get_u32_le().ok()? as usize;
        let name = (length <= saved.len()).then(|| saved.split_to(length))?;
        extensions.push(std::str::from_utf8(&name).ok()?.into());
    }
    Some(extensions)
}

/// The parts of a shard, sample by sample. They are read from the index where they are needed.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    index: IndexPart<'a>,
    /// The number of extensions.
    extensions: usize,
}

impl<'a> Parts<'a> {
    pub(super) fn new(index: IndexPart<'a>, extensions: usize) -> Self {
        Self { index, extensions }
    }

    /// The number of samples.
    pub(super) fn samples(&self) -> usize {
        self.index.rows
    }

    /// The parts of a sample, in the order of the tar.
    pub(super) fn of(&self, sample: usize) -> Result<Vec<TarPart>, DataError> {
        let mut parts = Vec::new();
        self.read(sample..sample + 1, |_, part| parts.push(part))?;
        Ok(parts)
    }

    /// The parts of all samples, each with the number of its sample, in runs of neighbours.
    pub(super) fn runs(&self) -> impl Iterator<Item = Result<Vec<(usize, TarPart)>, DataError>> {
        let starts = (0..self.samples()).step_by(RUN);
        starts.map(|start| {
            let mut parts = Vec::new();
            self.read(start..self.samples().min(start + RUN), |sample, part| parts.push((sample, part)))?;
            Ok(parts)
        })
    }

    /// Passes on the parts of some neighbouring samples, each with the number of its sample.
    fn read(&self, samples: Range<usize>, mut pass: impl FnMut(usize, TarPart)) -> Result<(), DataError> {
        let place = |sample: usize| (sample as u64).saturating_mul(FIRST);
        let numbers = self.index.read(place(samples.start)..place(samples.end + 1))?;
        let numbers = numbers.as_chunks().0;
        let number = |at: usize| numbers.get(at).map_or(0, |number| u64::from(u32::from_le_bytes(*number)));
        let part = |number: u64| place(self.samples() + 1).saturating_add(number * BYTES);
        // Each part of a sample has an extension of its own. A wrong index must not ask for more memory.
        if (0..samples.len()).any(|at| number(at + 1).saturating_sub(number(at)) > self.extensions as u64) {
            return Err(self.index.wrong());
        }
        let words = self.index.read(part(number(0))..part(number(samples.len())))?;
        let mut words = &*words;
        for (at, sample) in samples.enumerate() {
            for _ in number(at)..number(at + 1) {
                let part = TarPart::read(&mut words).filter(|part| part.extension < self.extensions);
                pass(sample, part.ok_or_else(|| self.index.wrong())?);
            }
        }
        Ok(())
    }

    /// Whether the index has as many bytes as its samples and parts.
    pub(super) fn is_whole(&self) -> Result<bool, DataError> {
        let last = (self.samples() as u64).saturating_mul(FIRST);
        let parts = self.index.read(last..last.saturating_add(FIRST))?.as_ref().get_u32_le();
        Ok(self.index.len() == last.saturating_add(FIRST + u64::from(parts) * BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{source::index::MadePart, tar::samples::Samples};

    fn built(samples: &[&[&str]]) -> MadePart {
        let (mut built, mut header) = (Samples::default(), 0);
        for (key, names) in samples.iter().enumerate() {
            for name in *names {
                built.add(format!("{key}.{name}").as_bytes(), header, header + 1536, header + 7).unwrap();
                header += 10 * BLOCK;
            }
        }
        built.end()
    }

    #[test]
    fn samples_have_as_many_parts_or_not() {
        for samples in [
            &[&["jpg", "cls"][..], &["jpg", "cls"]][..],
            &[&["jpg"], &["jpg", "cls"]],
            &[&["jpg", "cls"], &["jpg"]],
            &[],
        ] {
            let (made, mut header) = (built(samples), 0);
            let of = made.of_object("a");
            let extensions = extensions(of.columns.clone()).unwrap();
            let parts = Parts::new(of, extensions.len());
            assert_eq!((parts.samples(), parts.is_whole().unwrap()), (samples.len(), true));
            let all: Vec<_> = parts.runs().flat_map(Result::unwrap).map(|(sample, _)| sample).collect();
            assert!(all.iter().copied().eq((0..samples.len()).flat_map(|sample| vec![sample; samples[sample].len()])));
            for (sample, names) in samples.iter().enumerate() {
                let of = parts.of(sample).unwrap();
                assert_eq!(of.iter().map(|part| &*extensions[part.extension]).collect::<Vec<_>>(), *names);
                for part in of {
                    assert_eq!((part.header, part.start, part.bytes), (header, header + 1536, header + 7));
                    header += 10 * BLOCK;
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let part = TarPart { header: 0, start: 512, bytes: 1, extension: 0 };
        assert!(TarPart { header: (1 << 49) - 512, start: (1 << 49) + 512, ..part }.words().is_ok());
        assert!(TarPart { header: 1 << 49, start: (1 << 49) + 512, ..part }.words().is_err());
        assert!(TarPart { start: 256 * 512, ..part }.words().is_err());
        assert!(TarPart { extension: 1 << 15, ..part }.words().is_err());
        assert!(extensions(Bytes::from_static(&[9, 0, 0, 0, b'a'])).is_none());
    }

    #[test]
    fn numbers_that_lie_are_errors() {
        let part = [0u64, 1].iter().flat_map(|word| word.to_le_bytes());
        for (rows, firsts) in [
            (1, &[0u32, 2][..]),
            (2, &[0, 1, 0]),
            (2, &[1, 0, 1]),
            (1, &[u32::MAX, u32::MAX]),
            (9, &[0]),
            (usize::MAX, &[]),
        ] {
            let bytes: Vec<u8> = firsts.iter().flat_map(|first| first.to_le_bytes()).chain(part.clone()).collect();
            let made = MadePart::new(rows, Bytes::new(), &bytes);
            let parts = Parts::new(made.of_object("a"), 1);
            let is_right = parts.is_whole().unwrap_or(false) && (0..rows).all(|sample| parts.of(sample).is_ok());
            assert!(!is_right, "{rows} {firsts:?}");
        }
        let bytes = [0u32, 1].iter().flat_map(|first| first.to_le_bytes()).chain(part).collect::<Vec<u8>>();
        let made = MadePart::new(1, Bytes::new(), &bytes);
        assert_eq!(Parts::new(made.of_object("a"), 1).of(0).unwrap().len(), 1);
        assert!(Parts::new(made.of_object("a"), 0).of(0).is_err(), "it has no such extension");
    }
}
