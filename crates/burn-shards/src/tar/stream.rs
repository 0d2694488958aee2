//! The samples of a tar from front to back, without an index.

use super::{
    header::BLOCK,
    samples::SampleNames,
    scan::{Entry, PADDING, Walk},
    source::{KEY, URL, kind},
};
use crate::{
    error::DataError,
    source::{
        Selection,
        cell::{Cell, Record},
        magic::{TAR, other_start},
        stream::{ByteStream, RecordReader},
    },
};

/// A file that belongs to a sample: the number of its extension, and whether it begins the sample.
type NamedEntry = (Entry, usize, bool);

/// A tar that is read once. A sample is complete when the next one begins.
#[derive(Debug)]
pub(crate) struct TarStream {
    walk: Walk<ByteStream>,
    names: SampleNames,
    wanted: Selection,
    /// The wanted columns that are not files.
    named: Vec<&'static str>,
    /// The first file of the next sample, whose data were not read yet.
    ahead: Option<NamedEntry>,
    is_over: bool,
}

/// Begins to read a tar. `named` has the wanted columns that are not files.
pub(crate) fn stream(bytes: ByteStream, named: Vec<&'static str>, wanted: Selection) -> TarStream {
    let walk = Walk { bytes, at: 0 };
    TarStream { walk, names: SampleNames::default(), wanted, named, ahead: None, is_over: false }
}

impl TarStream {
    /// Goes to the next file of a sample.
    fn part(&mut self) -> Result<Option<NamedEntry>, DataError> {
        let bytes = &self.walk.bytes;
        if bytes.start.is_empty() {
            return Err(DataError::Empty { object: (*bytes.name).into() });
        }
        while !self.is_over {
            let entry = match self.walk.next() {
                Err(error) if self.walk.at < BLOCK => {
                    return Err(other_start(&self.walk.bytes.name, &self.walk.bytes.start, Some(&TAR)).unwrap_or(error));
                }
                entry => entry?,
            };
            let Some(entry) = entry else { break };
            let damaged =
                |problem| DataError::damaged(&self.walk.bytes.name, format!("{problem} (at byte {})", entry.header));
            if let Some((extension, begins)) = self.names.add(&entry.name).map_err(damaged)? {
                return Ok(Some((entry, extension, begins)));
            }
        }
        self.is_over = true;
        Ok(None)
    }

    /// Reads the padding behind the tar to its end, where a broken stream or a failed command is found.
    fn end(&mut self) -> Result<(), DataError> {
        if self.walk.bytes.skip(PADDING)? == PADDING {
            log::warn!("{} goes on behind the end of its tar, and that is not read", self.walk.bytes.name);
        }
        Ok(())
    }
}

impl RecordReader for TarStream {
    fn next(&mut self, _: usize) -> Result<Option<(Record, Option<Box<str>>)>, DataError> {
        let first = match self.ahead.take() {
            Some(first) => Some(first),
            None => self.part()?,
        };
        if first.is_none() {
            return self.end().map(|()| None);
        }
        let key = String::from_utf8_lossy(self.names.key.as_deref().unwrap_or_default()).into_owned();
        let (mut record, mut sum, mut next) = (Record::new(), 0_u64, first);
        if self.named.contains(&KEY) {
            record.push((KEY.into(), Cell::Text(key.clone())));
        }
        let limit = self.walk.bytes.largest;
        while let Some((entry, extension, _)) = next {
            let extension = &self.names.extensions[extension];
            if self.wanted.of(extension).is_some() {
                sum = sum.saturating_add(entry.bytes);
                if sum <= limit {
                    let bytes = self.walk.bytes.take(entry.bytes)?;
                    record.push((extension.clone(), Cell::Raw(bytes, kind(extension))));
                }
            }
            next = self.part()?;
            if next.as_ref().is_some_and(|(_, _, begins)| *begins) {
                self.ahead = next.take();
            }
        }
        let name = &*self.walk.bytes.name;
        if sum > limit {
            return Err(DataError::TooLarge { object: name.into(), key: Some(key.into()), bytes: sum, limit });
        }
        if self.named.contains(&URL) {
            record.push((URL.into(), Cell::Text(name.into())));
        }
        Ok(Some((record, Some(key.into()))))
    }
}
