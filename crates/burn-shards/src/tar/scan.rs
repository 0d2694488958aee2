//! Finds the files of a tar: one pass over its headers.

use super::{
    header::{BLOCK, EntryKind, HeaderExtension, TarHeader, extended, header},
    samples::Samples,
};
use crate::{
    error::DataError,
    source::{
        index::MadePart,
        magic::{TAR, tell},
        stream::ByteStream,
    },
    store::Objects,
    system::progress::Progress,
};

/// Bytes that are read at once. Small files lie close together, and one read then finds several headers.
const WINDOW: u64 = 8 << 10;
/// The same, if each read is a request.
const FAR: u64 = 1 << 20;
/// The longest name, or list of records, that an entry may have.
const LONGEST: u64 = 64 << 10;
/// The most padding that a writer adds to a tar.
pub(super) const PADDING: u64 = 1 << 20;
const CUT: &str = "the file is cut off: an entry ends behind it";

/// One file of a tar.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    /// Where its first header is.
    pub(super) header: u64,
    /// Where its data are.
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// Returns the index of a shard.
pub(super) fn scan(objects: &Objects, object: usize, progress: &Progress) -> Result<MadePart, DataError> {
    let (mut walk, mut samples) = (Walk::new(objects, object), Samples::default());
    let (mut told, mut of_macos) = (0, false);
    if objects.bytes(object) == 0 {
        return Err(DataError::Empty { object: objects.name(object).into() });
    }
    let mut next = walk.next().map_err(|error| tell(objects, object, Some(&TAR), error))?;
    while let Some(Entry { name, header, start, bytes }) = next {
        of_macos |= name.rsplit(|byte| *byte == b'/').next().is_some_and(|file| file.starts_with(b"._"));
        samples
            .add(&name, header, start, bytes)
            .map_err(|problem| DataError::damaged(objects.name(object), problem))?;
        progress.add(walk.at.saturating_sub(told));
        told = walk.at;
        next = walk.next()?;
    }
    let rest = objects.bytes(object).saturating_sub(told);
    progress.add(rest);
    if rest > PADDING {
        let name = objects.name(object);
        log::warn!(
            "{name} ends after {told} of its {} bytes, as a tar: it was copied in part, or others are behind it",
            objects.bytes(object)
        );
    }
    if of_macos {
        let name = objects.name(object);
        log::warn!(
            "{name} has files of macOS (`._*`), which are rows too if they are in a folder; `COPYFILE_DISABLE=1 tar` leaves them out"
        );
    }
    Ok(samples.end())
}

/// What a walk reads, from front to back.
pub(super) trait TarBytes {
    fn name(&self) -> &str;

    /// Notes that an entry ends here. Returns false if the bytes are known to end before.
    fn reaches(&mut self, end: u64) -> bool;

    /// Reads `bytes` bytes from `start` on, or fewer if there are no more.
    fn read(&mut self, start: u64, bytes: u64) -> Result<Vec<u8>, DataError>;
}

/// An object of a store.
#[derive(Debug)]
pub(super) struct ObjectBytes<'a> {
    objects: &'a Objects,
    object: usize,
    /// What was read last, and where it begins.
    window: (u64, Vec<u8>),
    /// How many bytes are read at once.
    ahead: u64,
}

impl TarBytes for ObjectBytes<'_> {
    fn name(&self) -> &str {
        self.objects.name(self.object)
    }

    fn reaches(&mut self, end: u64) -> bool {
        end <= self.objects.bytes(self.object)
    }

    fn read(&mut self, start: u64, bytes: u64) -> Result<Vec<u8>, DataError> {
        let size = self.objects.bytes(self.object);
        let bytes = bytes.min(size.saturating_sub(start));
        if bytes == 0 {
            return Ok(Vec::new());
        }
        let (from, window) = &self.window;
        let place = start.checked_sub(*from).and_then(|place| usize::try_from(place).ok());
        let inside = |place: usize| window.get(place..place.checked_add(bytes as usize)?);
        if let Some(part) = place.and_then(inside) {
            return Ok(part.to_vec());
        }
        let end = start.saturating_add(bytes.max(self.ahead)).min(size);
        self.window = (start, self.objects.read(self.object, start..end)?);
        Ok(self.window.1[..bytes as usize].to_vec())
    }
}

/// A stream. It is never read again before `start`.
impl TarBytes for ByteStream {
    fn name(&self) -> &str {
        &self.name
    }

    fn reaches(&mut self, end: u64) -> bool {
        self.due = end;
        true
    }

    fn read(&mut self, start: u64, bytes: u64) -> Result<Vec<u8>, DataError> {
        let read = self.read_from(start, bytes)?;
        match self.at < self.due.min(start) {
            true => Err(DataError::damaged(&self.name, format!("{CUT} (at byte {})", self.at))),
            false => Ok(read),
        }
    }
}

/// Goes from header to header.
#[derive(Debug)]
pub(super) struct Walk<B> {
    pub(super) bytes: B,
    pub(super) at: u64,
}

impl<'a> Walk<ObjectBytes<'a>> {
    /// Starts at the beginning.
    fn new(objects: &'a Objects, object: usize) -> Self {
        let ahead = if objects.is_far() { FAR } else { WINDOW };
        Self { bytes: ObjectBytes { objects, object, window: (0, Vec::new()), ahead }, at: 0 }
    }

    /// Starts at a header, for its file alone.
    pub(super) fn one(objects: &'a Objects, object: usize, at: u64) -> Self {
        Self { bytes: ObjectBytes { objects, object, window: (0, Vec::new()), ahead: BLOCK }, at }
    }
}

impl<B: TarBytes> Walk<B> {
    /// Returns the next file. Links and folders are skipped.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, DataError> {
        let (mut first, mut more) = (self.at, HeaderExtension::default());
        loop {
            let Some(TarHeader { kind, name, bytes }) = self.header()? else { return Ok(None) };
            let start = self.at + BLOCK;
            // PAX may give the size of the entry, but not of other headers before it.
            let bytes = match kind {
                EntryKind::Extended | EntryKind::LongName | EntryKind::Aside => bytes,
                EntryKind::Other if bytes == 0 => 0, // a link or a folder
                EntryKind::File | EntryKind::Other | EntryKind::Sparse => more.size.unwrap_or(bytes),
            };
            let end = start.checked_add(bytes).filter(|end| self.bytes.reaches(*end));
            let end = end.ok_or_else(|| self.damaged(CUT))?;
            match kind {
                EntryKind::LongName | EntryKind::Extended if bytes > LONGEST => {
                    let what = match kind {
                        EntryKind::Extended => {
                            "the extended header of an entry, which may be its attributes (`--no-xattrs` leaves them out),"
                        }
                        _ => "the name of an entry",
                    };
                    return Err(self.damaged(&format!("{what} has {bytes} bytes: {LONGEST} are the most")));
                }
                EntryKind::LongName => {
                    let name = self.bytes.read(start, bytes)?;
                    let path = name.split(|byte| *byte == 0).next().map(<[u8]>::to_vec);
                    more = more.or(HeaderExtension { path, ..HeaderExtension::default() });
                }
                EntryKind::Extended => {
                    let records = self.bytes.read(start, bytes)?;
                    more = more.or(extended(&records).map_err(|problem| self.damaged(problem))?);
                }
                _ => {}
            }
            self.at = end.checked_next_multiple_of(BLOCK).unwrap_or(end);
            match kind {
                EntryKind::Sparse => return Err(self.sparse()),
                EntryKind::File if more.sparse => return Err(self.sparse()),
                EntryKind::File => {
                    let name = more.path.unwrap_or(name);
                    return Ok(Some(Entry { name, header: first, start, bytes }));
                }
                EntryKind::Other => (first, more) = (self.at, HeaderExtension::default()),
                EntryKind::Aside if more == HeaderExtension::default() => first = self.at,
                EntryKind::LongName | EntryKind::Extended | EntryKind::Aside => {}
            }
        }
    }

    /// The header at the current place. `None` at the end.
    fn header(&mut self) -> Result<Option<TarHeader>, DataError> {
        // Writers end a tar with two blocks of zeros. A tar without them is accepted too, if it ends after an entry.
        let block = self.bytes.read(self.at, BLOCK)?;
        if block.is_empty() {
            return Ok(None);
        }
        let block = block.as_slice().try_into().map_err(|_| self.damaged("the file is cut off in a header"))?;
        header(block).map_err(|problem| self.damaged(problem))
    }

    fn damaged(&self, problem: &str) -> DataError {
        DataError::damaged(self.bytes.name(), format!("{problem} (at byte {})", self.at))
    }

    fn sparse(&self) -> DataError {
        DataError::unsupported(self.bytes.name(), None, "a sparse file")
    }
}
