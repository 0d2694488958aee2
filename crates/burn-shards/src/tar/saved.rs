//! Whether an index is of the shard that is there: one that was saved, or DALI's.

use super::{
    parts::{Parts, TarPart},
    samples::split,
    scan::{Entry, Walk},
};
use crate::{error::DataError, source::index::checked, store::Objects};
use bytes::Bytes;
use std::str;

/// Whether an index is of this shard, as far as some of its samples tell, and what is before and behind them.
pub(super) fn is_of(objects: &Objects, object: usize, saved: &Bytes) -> Result<bool, DataError> {
    let Some(parts) = Parts::read(saved.clone()) else { return Ok(false) };
    match (IndexCheck { objects, object, parts }).fits() {
        // What is wrong with the tar is told when it is scanned.
        Err(DataError::Damaged { .. } | DataError::Unsupported { .. }) => Ok(false),
        other => other,
    }
}

struct IndexCheck<'a> {
    objects: &'a Objects,
    object: usize,
    parts: Parts,
}

impl IndexCheck<'_> {
    fn fits(&self) -> Result<bool, DataError> {
        let samples = self.parts.samples();
        for sample in checked(&self.objects.list()[self.object], samples) {
            if !self.has_sample(sample)? {
                return Ok(false);
            }
        }
        let first = next(&mut self.walk(0))?.map(|entry| entry.start);
        let Some(last) = samples.checked_sub(1) else { return Ok(first.is_none()) };
        let begins = first == self.parts.of(0).next().map(|part| part.start);
        let mut behind = self.walk(self.parts.of(last).last().map_or(0, |part| part.header));
        behind.next()?;
        Ok(begins && next(&mut behind)?.is_none())
    }

    /// Whether the files of a sample are where the index says, have one key, and the file before has another one.
    fn has_sample(&self, sample: usize) -> Result<bool, DataError> {
        let mut key = None;
        for part in self.parts.of(sample) {
            match self.key(part)? {
                Some(of) if key.as_ref().is_none_or(|key| *key == of) => key = Some(of),
                _ => return Ok(false),
            }
        }
        let before = sample.checked_sub(1).and_then(|before| self.parts.of(before).last());
        Ok(match before {
            Some(part) => self.key(part)?.is_some_and(|before| Some(before) != key),
            None => true,
        })
    }

    /// The key of a file. `None` if it is not where the index says, or has another extension or size.
    fn key(&self, part: TarPart) -> Result<Option<Vec<u8>>, DataError> {
        let Some(entry) = self.walk(part.header).next()? else { return Ok(None) };
        let Some((key, extension)) = split(&entry.name) else { return Ok(None) };
        let known = &*self.parts.extensions[part.extension];
        let is_known = str::from_utf8(extension).is_ok_and(|extension| extension.to_lowercase() == known);
        let is_there = (entry.header, entry.start, entry.bytes) == (part.header, part.start, part.bytes);
        Ok((is_known && is_there).then(|| key.to_vec()))
    }

    fn walk(&self, at: u64) -> Walk<'_> {
        Walk::one(self.objects, self.object, at)
    }
}

/// The next file that belongs to a sample.
fn next(walk: &mut Walk) -> Result<Option<Entry>, DataError> {
    loop {
        match walk.next()? {
            Some(entry) if split(&entry.name).is_none() => {}
            other => return Ok(other),
        }
    }
}
