//! The magic bytes of known formats. If a file was opened as the wrong format, the error says what it is, and what to do.
//!
//! Token files have no magic bytes, so the first tokens of a file could look like another format. A format is in the table only if less
//! than one in ten million random starts matches it. So a file of real tokens is not refused: its first tokens would have to be two or more
//! specific ones, which are rare, and as `u32` mostly beyond all vocabularies. If the magic bytes are shorter (`BM`, `PK`, two bytes of a
//! pickle), something else must match too: a field of zeros, a name, the place of the next header. A text has no magic bytes. It is
//! recognised if it has 32 bytes or more, and the first 2,048 are all letters.

mod structure;
mod table;

use crate::{error::DataError, store::Objects};
use serde::{Deserialize, de::IgnoredAny};
#[cfg(feature = "tokenizers")]
use std::io;
use structure::is_short;
#[cfg(feature = "mds")]
pub(crate) use table::BZIP2;
#[cfg(feature = "parquet")]
pub(crate) use table::PARQUET;
pub(crate) use table::{GZIP, JSON, LFS, NPY, TAR, ZSTD};
use table::{KNOWN, TEXT, TEXTS};

/// A format of files.
#[derive(Debug)]
pub(crate) struct Magic {
    /// Bytes, and where they are.
    marks: &'static [(usize, &'static [u8])],
    /// A further condition.
    fits: fn(&[u8]) -> bool,
    /// What a file is.
    pub(crate) is: &'static str,
    /// What to do to make the file readable.
    pub(crate) cure: &'static str,
}

impl Magic {
    fn begins(&self, start: &[u8]) -> bool {
        let has = |(at, mark): &(usize, &[u8])| start.get(*at..).is_some_and(|rest| rest.starts_with(mark));
        self.marks.iter().all(has) && (self.fits)(start)
    }

    fn error(&self, name: &str) -> DataError {
        DataError::format(name, self.is, self.cure)
    }
}

/// The number of bytes at the start of a file that suffice to recognise its format.
pub(crate) const START_BYTES: u64 = 2048;

/// The part of a file that is examined.
fn start(file: &[u8]) -> &[u8] {
    file.get(..START_BYTES as usize).unwrap_or(file)
}

/// Recognises a format other than text from the start of a file.
pub(crate) fn no_text(file: &[u8]) -> Option<&'static Magic> {
    KNOWN.iter().find(|magic| magic.begins(start(file)))
}

/// Recognises a format from the start of a file. A short text is not recognised, because its letters may be numbers.
pub(crate) fn known(file: &[u8]) -> Option<&'static Magic> {
    no_text(file).or_else(|| text(file).filter(|_| !is_short(file)))
}

/// Recognises the kind of a text: JSON, a table, or other text.
pub(crate) fn text(file: &[u8]) -> Option<&'static Magic> {
    TEXTS.iter().find(|magic| magic.begins(start(file)))
}

/// Whether the whole file is a Git LFS pointer. A text may begin like one.
pub(crate) fn pointer(file: &[u8]) -> Option<&'static Magic> {
    const LONGEST: usize = 1024; // by the rule of Git LFS
    (file.len() < LONGEST && LFS.begins(file)).then_some(&LFS)
}

/// Whether an object begins like a sound or a film, which has one.
#[cfg(feature = "audio")]
pub(crate) fn is_sound(file: &[u8]) -> bool {
    known(file).is_some_and(|magic| [table::SOUND.0, table::FILM.0].contains(&magic.is))
}

/// The error for an object of another format, if it begins like one. Text does not count.
pub(crate) fn other_format(name: &str, file: &[u8]) -> Option<DataError> {
    no_text(file).map(|magic| magic.error(name))
}

/// Returns a text file, unless it has another format.
#[cfg(feature = "tokenizers")]
pub(crate) fn no_other<F: AsRef<[u8]>>(file: F) -> io::Result<F> {
    let error =
        |magic: &Magic| io::Error::new(io::ErrorKind::InvalidData, format!("it is {}: {}", magic.is, magic.cure));
    no_text(file.as_ref()).map_or(Ok(()), |magic| Err(error(magic))).map(|()| file)
}

/// The error for a text object that is not JSON: a table, or a text that is more than a bad line.
pub(crate) fn other_text(name: &str, file: &[u8]) -> Option<DataError> {
    let is_other = |magic: &&Magic| magic.is != JSON.is && (magic.is != TEXT.is || !is_short(file));
    text(file).filter(is_other).map(|magic| magic.error(name))
}

/// If an object begins like another format than the one it was opened as, replaces the error by one that says what it is.
pub(crate) fn tell(objects: &Objects, object: usize, taken_for: Option<&Magic>, error: DataError) -> DataError {
    let name = objects.name(object);
    if objects.bytes(object) == 0 {
        return DataError::Empty { object: name.into() };
    }
    let start = objects.read(object, 0..objects.bytes(object).min(START_BYTES)).unwrap_or_default();
    other_start(name, &start, taken_for).unwrap_or(error)
}

/// The error for a start of another format than the one that it was taken for.
pub(crate) fn other_start(name: &str, start: &[u8], taken_for: Option<&Magic>) -> Option<DataError> {
    let is_other = |magic: &&Magic| taken_for.is_none_or(|taken_for| taken_for.is != magic.is);
    known(start).filter(is_other).map(|magic| magic.error(name))
}

/// The description of a LitData folder, and what to do.
pub(crate) const LITDATA: (&str, &str) = (
    "the index of a folder of LitData (Lightning)",
    "read its samples with `litdata.StreamingDataset`, and write them as MDS with `streaming.MDSWriter`, or as Parquet",
);

/// Whether an `index.json` is LitData's.
pub(crate) fn is_litdata(index: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct LitdataIndex {
        #[serde(rename = "chunks")]
        _chunks: Vec<IgnoredAny>,
    }
    serde_json::from_slice::<LitdataIndex>(index).is_ok()
}

#[cfg(test)]
mod tests;
