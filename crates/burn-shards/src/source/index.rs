//! Saved indices: what is known about each object, in one file per data set.
//!
//! The file has a part for each object, and a table of the objects with their rows. `open` reads the table. Of a part, rows read the pages
//! that they need, and check them. The format decides what a part holds. A part is invalid if the size or the tag of its object has
//! changed. A different object may have the same size and tag, for example if files are shipped with their index. So some entries are
//! compared with the object when it is first used, unless it is exactly the file that the part was saved for.

mod bound;
mod file;
mod part;
mod spelling;

use crate::{
    error::DataError,
    store::{Object, Objects, options::Options},
    system::{
        parallel::{cores, in_order, in_parallel, in_parallel_by},
        progress::Progress,
        replace::replace,
    },
};
use bytes::Bytes;
pub(crate) use file::IndexPlace;
use file::IndexWriter;
use fnv::FnvHasher;
use part::IndexBytes;
pub(crate) use part::{IndexPart, MadePart};
use spelling::Spelling;
use std::{
    collections::BTreeSet,
    fs,
    hash::Hasher,
    io::Write,
    ops::Range,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// The table of an index, and where its parts are.
#[derive(Debug)]
pub(crate) struct Index {
    bytes: IndexBytes,
    /// For each object, if it has a part.
    lines: Vec<Option<IndexLine>>,
    /// What the format knows of columns: each distinct list of them once.
    pub(crate) columns: Vec<Bytes>,
    /// The parts of a small index that rows have read. Empty for a large one.
    kept: Vec<OnceLock<Vec<u8>>>,
}

/// The parts of an index with at most this number of bytes stay in memory once they are read: pages would slow down rows of few bytes.
const SMALL_INDEX: u64 = 128 << 20;

#[derive(Debug)]
struct IndexLine {
    range: Range<u64>,
    rows: usize,
    columns: usize,
    /// Whether the part was saved for exactly this object.
    is_same: bool,
    is_checked: AtomicBool,
}

impl Index {
    /// The number of rows of an object.
    pub(crate) fn rows(&self, object: usize) -> usize {
        self.lines[object].as_ref().map_or(0, |line| line.rows)
    }

    /// The place of an object's list in `columns`.
    pub(crate) fn list_of(&self, object: usize) -> usize {
        self.lines[object].as_ref().map_or(0, |line| line.columns)
    }

    /// The part of an object. When the object is first used, `is_of` compares it with the part.
    pub(crate) fn part<'a>(
        &'a self,
        objects: &'a Objects,
        object: usize,
        is_of: impl Fn(&IndexPart) -> Result<bool, DataError>,
    ) -> Result<IndexPart<'a>, DataError> {
        let right = if self.is_right(objects, object, is_of)? { self.unchecked(objects, object) } else { None };
        let part = right.ok_or_else(|| self.bytes.wrong(objects.name(object)))?;
        let Some(kept) = self.kept.get(object) else { return Ok(part) };
        if kept.get().is_none() {
            let whole = part.read(0..part.len())?;
            kept.get_or_init(|| whole.into_owned());
        }
        Ok(IndexPart { kept: kept.get().map(|kept| &**kept), ..part })
    }

    fn unchecked<'a>(&'a self, objects: &'a Objects, object: usize) -> Option<IndexPart<'a>> {
        let IndexLine { range, rows, columns, .. } = self.lines[object].as_ref()?;
        let (columns, object) = (&self.columns[*columns], objects.name(object));
        Some(IndexPart { rows: *rows, columns, bytes: &self.bytes, range: range.clone(), object, kept: None })
    }

    /// Whether an object has a part that `is_of` it. After a yes, `is_of` is not called again. It is not called at all if the object is exactly
    /// the one that the part was saved for.
    fn is_right(
        &self,
        objects: &Objects,
        object: usize,
        is_of: impl Fn(&IndexPart) -> Result<bool, DataError>,
    ) -> Result<bool, DataError> {
        let Some((line, part)) = self.lines[object].as_ref().zip(self.unchecked(objects, object)) else {
            return Ok(false);
        };
        if !line.is_same && !line.is_checked.load(Relaxed) {
            match is_of(&part) {
                Ok(false) | Err(DataError::Index { .. }) => return Ok(false),
                is_of => line.is_checked.store(is_of?, Relaxed),
            }
        }
        Ok(true)
    }

    /// Whether all objects have a part, and some parts are right: of the first object, of the last, and of three that depend on `mark`, those
    /// that may be other objects. If all files were replaced, this notices it. Behind a network all parts are compared, because
    /// that is faster with many requests at once than later one by one.
    fn seems_right(
        &self,
        objects: &Objects,
        mark: u64,
        is_of: impl Fn(usize, &IndexPart) -> Result<bool, DataError> + Sync,
    ) -> Result<bool, DataError> {
        if self.lines.iter().any(Option::is_none) {
            return Ok(false);
        }
        let is_other = |object: &usize| self.lines[*object].as_ref().is_some_and(|line| !line.is_same);
        let some: Vec<usize> = match objects.is_far() {
            true => (0..objects.len()).filter(is_other).collect(),
            false => drawn_by(&[mark], objects.len()).filter(is_other).collect(),
        };
        let right = look(objects, &some, |object| self.is_right(objects, *object, |part| is_of(*object, part)))?;
        Ok(!right.contains(&false))
    }

    /// The index of parts that were just made or checked.
    fn trusted(mut self) -> Self {
        self.lines.iter_mut().flatten().for_each(|line| line.is_same = true);
        self
    }
}

/// Reads the table of the saved index, if there is one. The last byte of `kind` is the version of this kind of index.
#[cfg(any(test, feature = "parquet"))]
pub(crate) fn load(objects: &Objects, kind: &[u8; 8], options: &Options) -> Option<Index> {
    load_from(&IndexPlace::of(objects, kind, options)?, objects, kind, options)
}

fn load_from(place: &IndexPlace, objects: &Objects, kind: &[u8; 8], options: &Options) -> Option<Index> {
    let bytes = IndexBytes::file(&place.path).ok()?;
    if is_own(objects, options) {
        bound::note_use(&place.path);
    }
    let index = file::read(bytes, objects.list(), place, kind);
    if index.is_none() {
        log::warn!("{} is no index of these files, or is damaged: it is made again", place.path.display());
    }
    index
}

/// Saves a part for each object.
#[cfg(any(test, feature = "parquet"))]
pub(crate) fn save(objects: &Objects, kind: &[u8; 8], options: &Options, parts: &[MadePart]) -> Result<(), DataError> {
    let Some(place) = IndexPlace::of(objects, kind, options) else { return Ok(()) };
    save_to(&place, objects, options, |file| {
        let mut writer = IndexWriter::new(file, &place, objects.list(), kind)?;
        let mut parts = parts.iter().enumerate();
        parts.try_for_each(|(object, part)| writer.add(object, &part.of_object(objects.name(object))))?;
        writer.end()
    })
    .map(drop)
}

/// Replaces a saved index with what `write` writes. Returns that file: another process may replace it at once.
fn save_to(
    place: &IndexPlace,
    objects: &Objects,
    options: &Options,
    write: impl FnOnce(&mut fs::File) -> Result<(), DataError>,
) -> Result<fs::File, DataError> {
    if let Some(folder) = place.path.parent() {
        fs::create_dir_all(folder).map_err(|error| place.refused(error))?;
    }
    let refused = |error| place.refused(error);
    let written = replace(&place.path, refused, |file| {
        write(file)?;
        file.try_clone().map_err(refused)
    })?;
    if is_own(objects, options)
        && let Err(error) = bound::remove_old(&place.path)
    {
        log::warn!("old indices beside {} are not removed: {error}", place.path.display());
    }
    Ok(written)
}

/// Whether indices are saved in a folder of the user's cache.
fn is_own(objects: &Objects, options: &Options) -> bool {
    options.index_dir.is_none() && objects.is_own
}

/// The number of random entries that are checked, besides the first and the last.
const DRAWN_ENTRIES: u64 = 3;
/// The number of objects that are checked at once, if each read is a request.
const LOOKS_AT_ONCE: usize = 64;

/// Which entries of a saved part are checked against its object: the first, the last, and three that depend on its size and tag. An index
/// may be shipped with its objects, and another object may have the same size and time.
pub(crate) fn checked(object: &Object, entries: usize) -> impl Iterator<Item = usize> + use<> {
    drawn_by(&[object.bytes, object.tag], entries)
}

/// The first entry, the last, and three that depend on `words`.
pub(crate) fn drawn_by(words: &[u64], entries: usize) -> impl Iterator<Item = usize> + use<> {
    let drawn = (0..DRAWN_ENTRIES).map(|number| {
        let mut hasher = FnvHasher::default();
        words.iter().chain([&number]).for_each(|word| hasher.write_u64(*word));
        (hasher.finish() % entries.max(1) as u64) as usize
    });
    let ends = [0, entries.saturating_sub(1)];
    let all: BTreeSet<usize> = ends.into_iter().chain(drawn).filter(|entry| *entry < entries).collect();
    all.into_iter()
}

/// Calls `one` for each saved part: on all threads of the machine, or on more threads if each read is a request.
pub(crate) fn look<I: Sync, O: Send>(
    objects: &Objects,
    saved: &[I],
    one: impl Fn(&I) -> Result<O, DataError> + Sync,
) -> Result<Vec<O>, DataError> {
    if objects.is_far() { in_parallel_by(LOOKS_AT_ONCE, saved, one) } else { in_parallel(saved, one) }
}

/// Returns the saved index, or makes it. If a part is missing or [seems wrong](Index::seems_right), all are checked, and `make` makes again
/// what is wrong, on several threads and with a progress bar. If the index cannot be saved, the log says so, and it stays in memory.
pub(crate) fn make(
    objects: &Objects,
    kind: &[u8; 8],
    options: &Options,
    is_of: impl Fn(usize, &IndexPart) -> Result<bool, DataError> + Sync,
    make: impl Fn(usize, &Progress) -> Result<MadePart, DataError> + Sync,
) -> Result<Index, DataError> {
    let place = IndexPlace::of(objects, kind, options);
    let saved = place.as_ref().and_then(|place| Some((load_from(place, objects, kind, options)?, place.mark)));
    let saved = match saved {
        Some((index, mark)) if index.seems_right(objects, mark, &is_of)? => return Ok(index),
        saved => saved.map(|(index, _)| index),
    };
    let all: Vec<usize> = (0..objects.len()).collect();
    let is_right = |index: &Index, object: usize| {
        let Some(part) = index.unchecked(objects, object) else { return Ok(false) };
        let is_right = part.is_whole() && index.is_right(objects, object, |part| is_of(object, part))?;
        if !is_right {
            let name = objects.name(object);
            log::warn!("the saved index of {name} is damaged or of another file: it is made again");
        }
        Ok(is_right)
    };
    let right = match &saved {
        Some(index) => look(objects, &all, |object| is_right(index, *object))?,
        None => vec![false; all.len()],
    };
    let (right, missing): (Vec<usize>, Vec<usize>) = all.into_iter().partition(|object| right[*object]);
    let write = |to: &mut dyn Write, place: &IndexPlace| {
        let bytes = missing.iter().fold(0, |all: u64, object| all.saturating_add(objects.bytes(*object)));
        let progress = Progress::new("indexing", bytes);
        let _shown = options.busy.shown_in(&progress);
        let mut writer = IndexWriter::new(to, place, objects.list(), kind)?;
        for object in &right {
            let part = saved.as_ref().and_then(|index| index.unchecked(objects, *object));
            part.map_or(Ok(()), |part| writer.add(*object, &part))?;
        }
        let make = |object: &usize| Ok::<_, DataError>((*object, make(*object, &progress)?));
        in_order(cores(), &missing, make, |(object, part)| writer.add(object, &part.of_object(objects.name(object))))?;
        writer.end()
    };
    let read = |bytes, place: &IndexPlace| file::read(bytes, objects.list(), place, kind).map(Index::trusted);
    if let Some(place) = &place {
        match save_to(place, objects, options, |file| write(file, place)) {
            Ok(file) => {
                if let Some(index) = IndexBytes::of(&place.path, file).ok().and_then(|bytes| read(bytes, place)) {
                    return Ok(index);
                }
            }
            Err(error @ DataError::Save { .. }) => log::warn!("{error}. Until then each process makes the index again"),
            Err(error) => return Err(error),
        }
    }
    let (place, mut memory) = (IndexPlace::in_memory(objects), Vec::new());
    write(&mut memory, &place)?;
    read(IndexBytes::Memory(memory.into()), &place)
        .ok_or_else(|| DataError::damaged("the index", "it cannot be read back from memory"))
}

impl IndexPlace {
    fn of(objects: &Objects, kind: &[u8; 8], options: &Options) -> Option<Self> {
        let kind = String::from_utf8_lossy(&kind[..7]).trim_end().to_string();
        Self::named(objects, &kind, "", options)
    }

    /// The place of one file for all objects, beside their indices. The file depends on `made_by`. `None` if there is no folder for it.
    pub(crate) fn for_all(objects: &Objects, kind: &str, made_by: &str, options: &Options) -> Option<Self> {
        let place = Self::named(objects, kind, made_by, options)?;
        if is_own(objects, options) {
            bound::note_use(&place.path);
        }
        Some(place)
    }

    /// As [`of`](Self::of), for a file that also depends on `made_by`.
    fn named(objects: &Objects, kind: &str, made_by: &str, options: &Options) -> Option<Self> {
        let folder = options.index_dir.as_ref().or(objects.folder.as_ref())?;
        let mut spelling = Spelling::new(options.index_dir.is_none().then_some(folder));
        let (mut all, mut mark, mut names) = (FnvHasher::default(), FnvHasher::default(), Vec::new());
        for object in objects.list() {
            let (name, mut hasher) = (spelling.of(&object.name), FnvHasher::default());
            hasher.write(name.as_bytes());
            names.push(hasher.finish());
            [hasher.finish(), object.bytes, object.tag].iter().for_each(|word| mark.write_u64(*word));
            all.write(name.as_bytes());
            all.write_u8(0);
        }
        [&mut all, &mut mark].into_iter().for_each(|hasher| hasher.write(made_by.as_bytes()));
        let path = folder.join(format!("{}{kind}-{:016x}.index", bound::NAME, all.finish()));
        Some(Self { path, mark: mark.finish(), names, identities: objects.identities() })
    }
}

#[cfg(test)]
pub(crate) mod tests;
