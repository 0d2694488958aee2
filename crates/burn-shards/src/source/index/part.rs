//! The parts of an index, and where their bytes are.

use crate::{error::DataError, store::read_at, system::files};
use bytes::Bytes;
use crc32fast::hash;
use std::{
    borrow::Cow,
    fs::File,
    io,
    ops::Range,
    path::{Path, PathBuf},
};

/// A part is cut into pages that end with their checksums. So each read can be checked, and reads little else.
pub(super) const PAGE: u64 = 1024;
const CHECKSUM: u64 = 4;
pub(super) const CONTENT: u64 = PAGE - CHECKSUM;
/// The number of pages that are read at once, where a whole part is read.
pub(super) const PAGES_AT_ONCE: u64 = 1024;

/// The bytes of an index. A file is read, not mapped, so that a file that was truncated, or replaced on a network share, is an error, not a
/// signal. It stays open, because another process may replace it. The system keeps in memory what is read often.
#[derive(Debug)]
pub(super) enum IndexBytes {
    File {
        path: PathBuf,
        file: File,
        bytes: u64,
    },
    /// An index that cannot be saved.
    Memory(Bytes),
}

impl IndexBytes {
    pub(super) fn file(path: &Path) -> io::Result<Self> {
        files::regular(path)?;
        Self::of(path, files::open(path)?)
    }

    pub(super) fn of(path: &Path, file: File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        Ok(Self::File { path: path.into(), file, bytes })
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::File { bytes, .. } => *bytes,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    pub(super) fn read(&self, range: Range<u64>) -> Result<Bytes, DataError> {
        let read = || match self {
            _ if range.start > range.end || range.end > self.len() => Err(io::ErrorKind::UnexpectedEof.into()),
            Self::File { file, .. } => {
                let (bytes, mut all) = ((range.end - range.start) as usize, Vec::new());
                all.try_reserve_exact(bytes)?;
                all.resize(bytes, 0);
                read_at(file, range.start, &mut all)?;
                Ok(all.into())
            }
            Self::Memory(bytes) => Ok(bytes.slice(range.start as usize..range.end as usize)),
        };
        let failed = |source| DataError::Read { object: self.name(), key: None, range: range.clone(), source };
        read().map_err(failed)
    }

    fn name(&self) -> String {
        match self {
            Self::File { path, .. } => path.display().to_string(),
            Self::Memory(_) => "the index in memory".into(),
        }
    }

    /// The error for a part that does not fit its object.
    pub(super) fn wrong(&self, object: &str) -> DataError {
        DataError::Index { object: object.into(), index: self.name() }
    }
}

/// What an index has of one object.
#[derive(Debug, Clone)]
pub(crate) struct IndexPart<'a> {
    pub(crate) rows: usize,
    /// What the format knows of the columns. Most objects have the same ones.
    pub(crate) columns: &'a Bytes,
    pub(super) bytes: &'a IndexBytes,
    pub(super) range: Range<u64>,
    pub(super) object: &'a str,
    /// All bytes without the columns and the checksums, if they are in memory.
    pub(super) kept: Option<&'a [u8]>,
}

impl<'a> IndexPart<'a> {
    /// The number of bytes, without the columns.
    pub(crate) fn len(&self) -> u64 {
        let (pages, rest) = (self.room() / PAGE, self.room() % PAGE);
        pages * CONTENT + rest.saturating_sub(CHECKSUM)
    }

    /// The number of bytes with the checksums.
    pub(super) fn room(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Reads some of the bytes, and checks the pages that have them.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Cow<'a, [u8]>, DataError> {
        if range.start > range.end || range.end > self.len() {
            return Err(self.wrong());
        }
        if let Some(kept) = self.kept {
            return Ok(kept[range.start as usize..range.end as usize].into());
        }
        let (first, end) = (range.start / CONTENT, range.end.div_ceil(CONTENT));
        let pages = self.with_checksums(first * PAGE..self.room().min(end * PAGE))?;
        let mut content = Vec::with_capacity(pages.len());
        for page in pages.chunks(PAGE as usize) {
            let (bytes, checksum) = page.split_last_chunk().ok_or_else(|| self.wrong())?;
            if hash(bytes) != u32::from_le_bytes(*checksum) {
                return Err(self.wrong());
            }
            content.extend_from_slice(bytes);
        }
        content.truncate((range.end - first * CONTENT) as usize);
        content.drain(..(range.start - first * CONTENT) as usize);
        Ok(content.into())
    }

    /// Reads some of the pages as they are.
    pub(super) fn with_checksums(&self, range: Range<u64>) -> Result<Bytes, DataError> {
        self.bytes.read(self.range.start + range.start..self.range.start + range.end)
    }

    /// Whether all pages can be read and have the right checksums.
    pub(super) fn is_whole(&self) -> bool {
        let piece = PAGES_AT_ONCE * CONTENT;
        let mut starts = (0..self.len()).step_by(piece as usize);
        starts.all(|start| self.read(start..self.len().min(start + piece)).is_ok())
    }

    /// The error for a part that does not fit its object.
    pub(crate) fn wrong(&self) -> DataError {
        self.bytes.wrong(self.object)
    }
}

/// A part that was just made.
#[derive(Debug)]
pub(crate) struct MadePart {
    rows: usize,
    columns: Bytes,
    bytes: IndexBytes,
}

impl MadePart {
    /// A part has at least a byte for each row.
    pub(crate) fn new(rows: usize, columns: impl Into<Bytes>, bytes: &[u8]) -> Self {
        let pages = bytes.chunks(CONTENT as usize);
        let mut all = Vec::with_capacity(bytes.len() + pages.len() * CHECKSUM as usize);
        for page in pages {
            all.extend_from_slice(page);
            all.extend(hash(page).to_le_bytes());
        }
        Self { rows, columns: columns.into(), bytes: IndexBytes::Memory(all.into()) }
    }

    pub(crate) fn of_object<'a>(&'a self, object: &'a str) -> IndexPart<'a> {
        let Self { rows, columns, bytes } = self;
        IndexPart { rows: *rows, columns, bytes, range: 0..bytes.len(), object, kept: None }
    }
}
