//! Rows from front to back: the trait that formats implement for it, and the bytes that they read.

use super::{
    cell::Record,
    magic::{GZIP, Magic, START_BYTES, ZSTD, no_text},
};
use crate::{error::DataError, store::BELIEVED_BYTES};
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// A row with its key, if the format has keys.
pub(crate) type KeyedRecord = (Record, Option<Box<str>>);

/// The rows of one format, each of which is read once.
pub(crate) trait RecordReader: Send {
    /// Reads the wanted columns of the next row, whose number is `row`. `None` at the end. After an
    /// error that is not of a single row, it is not called again.
    fn next(&mut self, row: usize) -> Result<Option<KeyedRecord>, DataError>;
}

/// The bytes of a stream, decompressed.
#[derive(derive_more::Debug)]
pub(crate) struct ByteStream {
    pub(crate) name: String,
    /// The first bytes, which show the format. They are read again.
    pub(crate) start: Vec<u8>,
    /// The number of bytes that were read.
    pub(crate) at: u64,
    /// If the stream ends before this place, it is truncated.
    pub(crate) due: u64,
    /// The most bytes that a sample may have.
    pub(crate) largest: u64,
    #[debug(skip)]
    read: BufReader<Box<dyn Read + Send>>,
}

impl ByteStream {
    /// Begins a stream. It waits for the first bytes.
    pub(crate) fn new(name: String, read: Box<dyn Read + Send>, largest: u64) -> Result<Self, DataError> {
        let (start, read) = unpacked(&name, read)?;
        Ok(Self { name, start, at: 0, due: 0, largest, read: BufReader::with_capacity(1 << 16, read) })
    }

    /// Skips to `start`, and reads `bytes` bytes from there, or fewer if the stream ends. Memory grows as they arrive.
    pub(crate) fn read_from(&mut self, start: u64, bytes: u64) -> Result<Vec<u8>, DataError> {
        let (at, mut taken) = (self.at, Vec::with_capacity(bytes.min(BELIEVED_BYTES) as usize));
        let failed = |error| failed(&self.name, at, start.saturating_add(bytes), error);
        self.at += io::copy(&mut (&mut self.read).take(start.saturating_sub(at)), &mut io::sink()).map_err(failed)?;
        if self.at >= start {
            self.at += (&mut self.read).take(bytes).read_to_end(&mut taken).map_err(failed)? as u64;
        }
        Ok(taken)
    }

    /// Reads a line with its end. It is empty at the end of the stream. A line that is longer than a sample may be is skipped.
    pub(crate) fn line(&mut self) -> Result<Vec<u8>, DataError> {
        let (at, mut line, most) = (self.at, Vec::new(), self.largest.saturating_add(1));
        let failed = |error| failed(&self.name, at, at, error);
        let mut bytes = (&mut self.read).take(most).read_until(b'\n', &mut line).map_err(failed)? as u64;
        if bytes == most && !line.ends_with(b"\n") {
            bytes += self.read.skip_until(b'\n').map_err(failed)? as u64;
        }
        self.at += bytes;
        if bytes < most {
            return Ok(line);
        }
        Err(DataError::TooLarge { object: self.name.clone(), key: None, bytes, limit: self.largest })
    }
}

/// The error of a read. A store's reader has made it already.
fn failed(object: &str, start: u64, end: u64, source: io::Error) -> DataError {
    let failed = |source| DataError::Read { object: object.into(), key: None, range: start..end, source };
    source.downcast().unwrap_or_else(failed)
}

/// Decompresses gzip and Zstandard. Returns the first bytes too, which are read again.
fn unpacked(name: &str, read: Box<dyn Read + Send>) -> Result<(Vec<u8>, Box<dyn Read + Send>), DataError> {
    let (start, read) = begun(name, read)?;
    match no_text(&start) {
        Some(magic) if [GZIP.is, ZSTD.is].contains(&magic.is) => begun(name, decoder(name, magic, read)?),
        _ => Ok((start, read)),
    }
}

/// Decompresses all members of gzip, or all frames of Zstandard.
#[cfg(any(feature = "mds", feature = "parquet"))]
fn decoder(name: &str, magic: &Magic, read: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>, DataError> {
    Ok(match magic.is == GZIP.is {
        true => Box::new(flate2::read::MultiGzDecoder::new(read)),
        false => Box::new(zstd::stream::read::Decoder::new(read).map_err(|error| failed(name, 0, 0, error))?),
    })
}

#[cfg(not(any(feature = "mds", feature = "parquet")))]
fn decoder(name: &str, magic: &Magic, _: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>, DataError> {
    Err(DataError::format(name, magic.is, "enable the feature `mds` or `parquet`, which decompresses it"))
}

fn begun(name: &str, mut read: Box<dyn Read + Send>) -> Result<(Vec<u8>, Box<dyn Read + Send>), DataError> {
    let mut start = Vec::new();
    let begun = (&mut read).take(START_BYTES).read_to_end(&mut start);
    begun.map_err(|error| failed(name, 0, START_BYTES, error))?;
    Ok((start.clone(), Box::new(Cursor::new(start).chain(read))))
}
