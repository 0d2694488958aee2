//! How files of known formats begin. With it an error tells what a file is that was taken for another format, and what
//! to do.
//!
//! Tokens have no mark of their own, so the first tokens of a file could be the mark of another format. A format is in the
//! table only if less than one in ten million random starts fits it. So a file of real tokens is not refused: its first two or
//! more tokens would have to be certain ones, which are rare, and as `u32` are mostly beyond all vocabularies. Where marks are
//! shorter (`BM`, `PK`, two bytes of a pickle), something else must fit too: a field of zeros, a name, the place of the next
//! header. A text has no mark. It is told if it has 32 bytes or more, and the first 2,048 are all letters.

mod structure;
mod table;

use crate::{error::DataError, store::Objects};
use serde::{Deserialize, de::IgnoredAny};
#[cfg(feature = "tokenizers")]
use std::io;
use structure::is_short;
#[cfg(feature = "parquet")]
pub(crate) use table::PARQUET;
#[cfg(feature = "mds")]
pub(crate) use table::{BZIP2, GZIP, ZSTD};
pub(crate) use table::{JSON, LFS, NPY, TAR};
use table::{KNOWN, TEXT, TEXTS};

/// A format of files.
#[derive(Debug)]
pub(crate) struct Magic {
    /// Bytes, and where they are.
    marks: &'static [(usize, &'static [u8])],
    /// What must be so besides.
    fits: fn(&[u8]) -> bool,
    /// What a file is.
    pub(crate) is: &'static str,
    /// What to do with the file so that it can be read.
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

/// The number of bytes at the start of a file that are enough to tell its format.
pub(crate) const START_BYTES: u64 = 2048;

/// As much of a file as is looked at.
fn start(file: &[u8]) -> &[u8] {
    file.get(..START_BYTES as usize).unwrap_or(file)
}

/// Tells a format that is no text of rows by the start of a file.
pub(crate) fn no_text(file: &[u8]) -> Option<&'static Magic> {
    KNOWN.iter().find(|magic| magic.begins(start(file)))
}

/// Tells a format by the start of a file. A few letters may be numbers, so a short text is not told.
pub(crate) fn known(file: &[u8]) -> Option<&'static Magic> {
    no_text(file).or_else(|| text(file).filter(|_| !is_short(file)))
}

/// Tells what a text is: JSON, a table, or another one.
pub(crate) fn text(file: &[u8]) -> Option<&'static Magic> {
    TEXTS.iter().find(|magic| magic.begins(start(file)))
}

/// The pointer of Git LFS that a file is as a whole. A text may begin like one.
pub(crate) fn pointer(file: &[u8]) -> Option<&'static Magic> {
    const LONGEST: usize = 1024; // by its own rule
    (file.len() < LONGEST && LFS.begins(file)).then_some(&LFS)
}

/// The error for an object that is of another format, if it begins like one. A text is none.
pub(crate) fn other_format(name: &str, file: &[u8]) -> Option<DataError> {
    no_text(file).map(|magic| magic.error(name))
}

/// Passes on a file of text, unless it is one of another format.
#[cfg(feature = "tokenizers")]
pub(crate) fn no_other<F: AsRef<[u8]>>(file: F) -> io::Result<F> {
    let error =
        |magic: &Magic| io::Error::new(io::ErrorKind::InvalidData, format!("it is {}: {}", magic.is, magic.cure));
    no_text(file.as_ref()).map_or(Ok(()), |magic| Err(error(magic))).map(|()| file)
}

/// The error for an object of text that is no JSON: a table, or a text that is no bad line.
pub(crate) fn other_text(name: &str, file: &[u8]) -> Option<DataError> {
    let is_other = |magic: &&Magic| magic.is != JSON.is && (magic.is != TEXT.is || !is_short(file));
    text(file).filter(is_other).map(|magic| magic.error(name))
}

/// Turns an error about an object that was taken for a format into one that says what it is, if it begins like another one.
pub(crate) fn tell(objects: &Objects, object: usize, taken_for: Option<&Magic>, error: DataError) -> DataError {
    let name = objects.name(object);
    if objects.bytes(object) == 0 {
        return DataError::Empty { object: name.into() };
    }
    let start = objects.read(object, 0..objects.bytes(object).min(START_BYTES)).unwrap_or_default();
    match known(&start) {
        Some(magic) if taken_for.is_none_or(|taken_for| taken_for.is != magic.is) => magic.error(name),
        _ => error,
    }
}

/// What a folder of LitData is, and the cure.
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
