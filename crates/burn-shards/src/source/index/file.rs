//! The file of an index: a head, a part for each object, a table of the objects, their columns, and a tail. All numbers are little-endian.

use super::{
    Index, IndexLine, SMALL_INDEX,
    part::{IndexBytes, IndexPart, PAGE, PAGES_AT_ONCE},
};
use crate::{
    error::DataError,
    store::{Object, Objects},
};
use bytes::{Buf, Bytes};
use crc32fast::hash;
use std::{
    collections::HashMap,
    io::{self, Write},
    iter,
    path::PathBuf,
    sync::{OnceLock, atomic::AtomicBool},
};

const MAGIC: &[u8; 8] = b"burnpid3";
/// Magic, kind.
const HEAD: u64 = 8 + 8;
/// Hash of the name in its [one spelling](super::Spelling), size, tag, identity; start of the part, its length; rows, number of the columns.
const LINE: usize = 8 * 8;
/// Start of the table, number of objects, checksum of the table and the columns.
const TAIL: u64 = 3 * 8;

/// The table has at most this number of bytes for each byte of its objects, [`SMALL_TABLE`] for each object and for the rest, and
/// [`LARGEST_TABLE`] in all.
const TABLE_BYTES_EACH: u64 = 8;
const SMALL_TABLE: u64 = 64 << 10;
const LARGEST_TABLE: u64 = 1 << 30;

/// Where the index of some objects is saved, or another file for all of them.
#[derive(Debug)]
pub(crate) struct IndexPlace {
    pub(crate) path: PathBuf,
    /// A hash of the names, sizes and tags of the objects, and of what made the file.
    pub(crate) mark: u64,
    /// A hash of the name of each object in its one spelling.
    pub(super) names: Vec<u64>,
    /// [`Store::identity`](crate::store::Store::identity) of each object.
    pub(super) identities: Vec<u64>,
}

impl IndexPlace {
    /// The place of an index that stays in memory.
    pub(super) fn in_memory(objects: &Objects) -> Self {
        let names = (0..objects.len() as u64).collect();
        Self { path: PathBuf::new(), mark: 0, names, identities: vec![0; objects.len()] }
    }

    pub(super) fn refused(&self, source: io::Error) -> DataError {
        DataError::Save { path: self.path.clone(), source }
    }
}

/// Writes an index of this kind. Parts may come in any order.
pub(super) struct IndexWriter<'a, W> {
    to: W,
    place: &'a IndexPlace,
    objects: &'a [Object],
    /// The number of bytes so far.
    at: u64,
    table: Vec<u8>,
    /// The number of each list of columns.
    numbers: HashMap<Bytes, u64>,
    /// Each list with its length.
    columns: Vec<u8>,
}

impl<'a, W: Write> IndexWriter<'a, W> {
    pub(super) fn new(
        mut to: W,
        place: &'a IndexPlace,
        objects: &'a [Object],
        kind: &[u8; 8],
    ) -> Result<Self, DataError> {
        to.write_all(MAGIC).and_then(|()| to.write_all(kind)).map_err(|error| place.refused(error))?;
        let (table, numbers, columns) = (Vec::new(), HashMap::new(), Vec::new());
        Ok(Self { to, place, objects, at: HEAD, table, numbers, columns })
    }

    /// Adds the part of an object.
    pub(super) fn add(&mut self, object: usize, part: &IndexPart) -> Result<(), DataError> {
        let piece = PAGES_AT_ONCE * PAGE;
        for start in (0..part.room()).step_by(piece as usize) {
            let pages = part.with_checksums(start..part.room().min(start + piece))?;
            self.to.write_all(&pages).map_err(|error| self.place.refused(error))?;
        }
        let next = self.numbers.len() as u64;
        let columns = *self.numbers.entry(part.columns.clone()).or_insert(next);
        if columns == next {
            self.columns.extend((part.columns.len() as u64).to_le_bytes());
            self.columns.extend(part.columns);
        }
        let (Object { bytes, tag, .. }, IndexPlace { names, identities, .. }) = (&self.objects[object], self.place);
        let about = [names[object], *bytes, *tag, identities[object]];
        let found = [self.at, part.room(), part.rows as u64, columns];
        self.at += part.room();
        about.iter().chain(&found).for_each(|word| self.table.extend(word.to_le_bytes()));
        Ok(())
    }

    pub(super) fn end(mut self) -> Result<(), DataError> {
        let count = (self.table.len() / LINE) as u64;
        self.table.append(&mut self.columns);
        let tail = [self.at, count, hash(&self.table).into()];
        tail.iter().for_each(|word| self.table.extend(word.to_le_bytes()));
        self.to.write_all(&self.table).and_then(|()| self.to.flush()).map_err(|error| self.place.refused(error))
    }
}

/// Reads the table of an index. It has a line for each object for which a part was saved, by name, size and tag. `None` if the index is
/// corrupt or of another kind.
pub(super) fn read(bytes: IndexBytes, objects: &[Object], place: &IndexPlace, kind: &[u8; 8]) -> Option<Index> {
    if *bytes.read(0..HEAD).ok()? != *[*MAGIC, *kind].as_flattened() {
        return None;
    }
    let end = bytes.len().checked_sub(TAIL)?;
    let mut tail = bytes.read(end..bytes.len()).ok()?;
    let (start, count, checksum) = (tail.get_u64_le(), tail.get_u64_le(), tail.get_u64_le());
    // The file may be sparse.
    let most = |object: &Object| object.bytes.saturating_mul(TABLE_BYTES_EACH).saturating_add(SMALL_TABLE);
    let most = objects.iter().fold(SMALL_TABLE, |all, object| all.saturating_add(most(object)));
    let mut lines = (end.checked_sub(start)? <= most.min(LARGEST_TABLE)).then(|| bytes.read(start..end).ok())??;
    if u64::from(hash(&lines)) != checksum {
        return None;
    }
    let mut lists = lines.split_off(usize::try_from(count).ok()?.checked_mul(LINE).filter(|at| *at <= lines.len())?);
    let mut columns = Vec::new();
    while !lists.is_empty() {
        let length = usize::try_from(lists.try_get_u64_le().ok()?).ok()?;
        columns.push((length <= lists.len() && columns.len() < objects.len()).then(|| lists.split_to(length))?);
    }
    let mut found = HashMap::with_capacity(lines.len() / LINE);
    for line in lines.chunks_exact(LINE) {
        let mut words = line.chunks_exact(8).map(|mut word| word.get_u64_le());
        let mut next = || words.next();
        let (about, identity) = ((next()?, next()?, next()?), next()?);
        let (from, bytes, rows, of) = (next()?, next()?, next()?, next()?);
        let range = from..from.checked_add(bytes).filter(|end| *end <= start && rows <= bytes)?;
        let of = usize::try_from(of).ok().filter(|of| *of < columns.len())?;
        found.insert(about, (range, usize::try_from(rows).ok()?, of, identity));
    }
    let line = |((object, name), identity): ((&Object, &u64), &u64)| {
        let (range, rows, columns, saved) = found.get(&(*name, object.bytes, object.tag))?.clone();
        let is_same = *identity != 0 && *identity == saved;
        Some(IndexLine { range, rows, columns, is_same, is_checked: AtomicBool::new(false) })
    };
    let lines: Vec<_> = objects.iter().zip(&place.names).zip(&place.identities).map(line).collect();
    // Parts may overlap.
    let rooms = lines.iter().flatten().map(|line: &IndexLine| line.range.end - line.range.start);
    let kept = if rooms.fold(0, u64::saturating_add) <= SMALL_INDEX { objects.len() } else { 0 };
    let kept = iter::repeat_with(OnceLock::new).take(kept).collect();
    Some(Index { bytes, lines, columns, kept })
}
