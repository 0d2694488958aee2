//! The samples of a tar from front to back, without an index.

use super::{
    samples::{Samples, split},
    scan::{Entry, PADDING, Walk},
    source::{KEY, URL, kind},
};
use crate::{
    error::DataError,
    source::{
        Selection,
        cell::{Cell, Record},
        magic::{TAR, other_start},
        stream::{ByteStream, KeyedRecord, RecordReader},
    },
};

/// A tar that is read once. A sample is complete when the next one begins.
#[derive(Debug)]
pub(crate) struct TarStream {
    walk: Walk<ByteStream>,
    wanted: Selection,
    /// The wanted columns that are not files.
    named: Vec<&'static str>,
    key: Option<Vec<u8>>,
    /// Checks the names of one sample.
    names: Samples,
    /// The first file of the next sample, once that is known. Its data were not read yet. `None` inside at the end of the tar.
    ahead: Option<Option<Entry>>,
}

/// Begins to read a tar. `named` has the wanted columns that are not files.
pub(crate) fn stream(bytes: ByteStream, named: Vec<&'static str>, wanted: Selection) -> Result<TarStream, DataError> {
    if bytes.start.is_empty() {
        return Err(DataError::Empty { object: bytes.name });
    }
    let walk = Walk { bytes, at: 0 };
    Ok(TarStream { walk, wanted, named, key: None, names: Samples::default(), ahead: None })
}

impl TarStream {
    /// Goes to the next file of a sample. Returns whether it begins the sample.
    fn part(&mut self) -> Result<Option<(Entry, bool)>, DataError> {
        loop {
            let next = self.walk.next();
            let name = &self.walk.bytes.name;
            let entry = match next {
                Err(error) if self.walk.at == 0 => {
                    return Err(other_start(name, &self.walk.bytes.start, Some(&TAR)).unwrap_or(error));
                }
                next => next?,
            };
            let Some(entry) = entry else { return Ok(None) };
            let Some((key, _)) = split(&entry.name) else { continue };
            let begins = self.key.as_deref() != Some(key);
            if begins {
                (self.key, self.names) = (Some(key.to_vec()), Samples::default());
            }
            let damaged = |problem| DataError::damaged(name, format!("{problem} (at byte {})", entry.header));
            self.names.add(&entry.name, 0, 0, 0).map_err(damaged)?;
            return Ok(Some((entry, begins)));
        }
    }
}

impl RecordReader for TarStream {
    fn next(&mut self, _: usize) -> Result<Option<KeyedRecord>, DataError> {
        let first = match self.ahead.take() {
            Some(first) => first,
            None => self.part()?.map(|(first, _)| first),
        };
        // An error of the stream may come in the padding behind the tar.
        let Some(mut entry) = first else {
            let rest = self.walk.bytes.read_from(self.walk.at, PADDING)?;
            if rest.iter().any(|byte| *byte != 0) {
                log::warn!("{}: others are behind the end of the tar, and are not read", self.walk.bytes.name);
            }
            return Ok(None);
        };
        let key = String::from_utf8_lossy(self.key.as_deref().unwrap_or_default()).into_owned();
        let (mut record, mut bytes, limit) = (Record::new(), 0_u64, self.walk.bytes.largest);
        if self.named.contains(&KEY) {
            record.push((KEY.into(), Cell::Text(key.clone())));
        }
        loop {
            let extension = split(&entry.name).map_or(&[][..], |(_, extension)| extension);
            let extension = String::from_utf8_lossy(extension).to_lowercase();
            if self.wanted.of(&extension).is_some() {
                bytes = bytes.saturating_add(entry.bytes);
                if bytes <= limit {
                    let file = self.walk.bytes.read_from(entry.start, entry.bytes)?;
                    record.push((extension.as_str().into(), Cell::Raw(file, kind(&extension))));
                }
            }
            match self.part()? {
                Some((next, false)) => entry = next,
                other => break self.ahead = Some(other.map(|(first, _)| first)),
            }
        }
        let object = &self.walk.bytes.name;
        if bytes > limit {
            return Err(DataError::TooLarge { object: object.clone(), key: Some(key.into()), bytes, limit });
        }
        if self.named.contains(&URL) {
            record.push((URL.into(), Cell::Text(object.clone())));
        }
        Ok(Some((record, Some(key.into()))))
    }
}
