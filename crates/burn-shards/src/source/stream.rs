//! Rows from front to back: the trait that formats implement for it, and the bytes that they read.

use super::{
    cell::Record,
    magic::{GZIP, Magic, START_BYTES, ZSTD, no_text},
};
use crate::{error::DataError, store::BELIEVED_BYTES};
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// The rows of one format, each of which is read once.
pub(crate) trait RecordReader: Send {
    /// Reads the wanted columns of the next row, whose number is `row`, and its key if the format has keys. `None` at the end. After an
    /// error that is not of a single row, it is not called again.
    fn next(&mut self, row: usize) -> Result<Option<(Record, Option<Box<str>>)>, DataError>;
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

    /// Reads this number of bytes, or fewer if the stream ends. Memory grows as they arrive.
    pub(crate) fn take(&mut self, bytes: u64) -> Result<Vec<u8>, DataError> {
        let mut taken = Vec::with_capacity(bytes.min(BELIEVED_BYTES) as usize);
        let read = (&mut self.read).take(bytes).read_to_end(&mut taken);
        self.count(bytes, read.map(|read| read as u64))?;
        Ok(taken)
    }

    /// Skips this number of bytes, or fewer if the stream ends. Returns the number.
    pub(crate) fn skip(&mut self, bytes: u64) -> Result<u64, DataError> {
        let read = io::copy(&mut (&mut self.read).take(bytes), &mut io::sink());
        self.count(bytes, read)
    }

    /// Reads a line with its end. It is empty at the end of the stream. A line that is longer than a sample may be is skipped.
    pub(crate) fn line(&mut self) -> Result<Vec<u8>, DataError> {
        let (mut line, most) = (Vec::new(), self.largest.saturating_add(1));
        let read = (&mut self.read).take(most).read_until(b'\n', &mut line);
        let mut bytes = self.count(most, read.map(|read| read as u64))?;
        if bytes <= self.largest {
            return Ok(line);
        }
        if !line.ends_with(b"\n") {
            let read = self.read.skip_until(b'\n');
            bytes += self.count(1, read.map(|read| read as u64))?;
        }
        Err(DataError::TooLarge { object: self.name.clone(), key: None, bytes, limit: self.largest })
    }

    /// Counts the bytes of a read that may have had this number of them.
    fn count(&mut self, wanted: u64, read: io::Result<u64>) -> Result<u64, DataError> {
        let read = read.map_err(|source| failed(&self.name, self.at, wanted, source))?;
        self.at += read;
        Ok(read)
    }
}

/// The error of a read. A store's reader has made it already.
fn failed(object: &str, at: u64, bytes: u64, source: io::Error) -> DataError {
    let range = at..at.saturating_add(bytes);
    source.downcast().unwrap_or_else(|source| DataError::Read { object: object.into(), key: None, range, source })
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
