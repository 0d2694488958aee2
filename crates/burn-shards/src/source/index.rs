//! Saved indices: what is known about each object, in one file per data set.
//!
//! The file has a head, a table of the objects, and a part for each object. The format decides what a part holds. A part is invalid if the
//! size or the tag of its object has changed. A different object may have the same size and tag, for example if files are shipped with
//! their index. So some entries are compared with the object, unless it is exactly the file that the part was saved for. All numbers are
//! little-endian.

mod bound;
mod file;
mod spelling;

use crate::{
    error::DataError,
    store::{Object, Objects, options::Options},
    system::{
        files,
        parallel::{in_parallel, in_parallel_by},
        progress::Progress,
    },
};
use bytes::Bytes;
pub(crate) use file::IndexPlace;
use file::{parts, write};
use fnv::FnvHasher;
use spelling::Spelling;
use std::{
    collections::BTreeSet,
    fs::File,
    hash::Hasher,
    io::{self, Read},
    path::Path,
};

/// An index has at most this number of bytes for each byte of its objects, and [`SMALL_INDEX`] for each object and for
/// its head.
const INDEX_BYTES_EACH: u64 = 8;
const SMALL_INDEX: u64 = 64 << 10;

/// Returns the part of each object, if one was saved, the object has not changed, and the part `is_of` it. `is_of` is not called if the
/// object is exactly the one that the part was saved for. The last byte of `kind` is the version of this kind of index.
pub(crate) fn load(
    objects: &Objects,
    kind: &[u8; 8],
    options: &Options,
    is_of: impl Fn(usize, &Bytes) -> Result<bool, DataError> + Sync,
) -> Result<Vec<Option<Bytes>>, DataError> {
    let saved = saved(objects, kind, options).unwrap_or_else(|| vec![None; objects.len()]);
    let saved: Vec<_> = saved.into_iter().enumerate().collect();
    look(objects, &saved, |(object, saved)| match saved {
        None => Ok(None),
        Some((part, is_same)) if *is_same || is_of(*object, part)? => Ok(Some(part.clone())),
        Some(_) => {
            log::warn!("the saved index of {} is of another file: it is made again", objects.name(*object));
            Ok(None)
        }
    })
}

/// The parts of the saved index, if there is one.
fn saved(objects: &Objects, kind: &[u8; 8], options: &Options) -> Option<Vec<Option<(Bytes, bool)>>> {
    let place = IndexPlace::of(objects, kind, options)?;
    let file = files::with_room(|| read(&place.path, objects)).ok()?;
    if is_own(objects, options) {
        bound::note_use(&place.path);
    }
    let parts = parts(Bytes::from(file), objects.list(), &place, kind);
    if parts.is_none() {
        log::warn!("{} is no index of these files, or is damaged: it is made again", place.path.display());
    }
    parts
}

/// Reads a file, but at most as many bytes as an index of these objects may have, because the file may be sparse.
fn read(path: &Path, objects: &Objects) -> io::Result<Vec<u8>> {
    let most = |object: &Object| object.bytes.saturating_mul(INDEX_BYTES_EACH).saturating_add(SMALL_INDEX);
    let most = objects.list().iter().fold(SMALL_INDEX, |all, object| all.saturating_add(most(object)));
    let mut file = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut file)?;
    Ok(file)
}

/// Saves a part for each object.
pub(crate) fn save(objects: &Objects, kind: &[u8; 8], options: &Options, parts: &[Bytes]) -> Result<(), DataError> {
    let Some(place) = IndexPlace::of(objects, kind, options) else { return Ok(()) };
    let refused = |source| DataError::Save { path: place.path.clone(), source };
    write(&place, objects.list(), kind, parts).map_err(refused)?;
    if is_own(objects, options)
        && let Err(error) = bound::remove_old(&place.path)
    {
        log::warn!("old indices beside {} are not removed: {error}", place.path.display());
    }
    Ok(())
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

/// Returns the part of each object: saved ones for which `is_of` is true, and others made by `make` on several threads, with a progress
/// bar. If the index cannot be saved, the log says so.
pub(crate) fn make(
    objects: &Objects,
    kind: &[u8; 8],
    options: &Options,
    is_of: impl Fn(usize, &Bytes) -> Result<bool, DataError> + Sync,
    make: impl Fn(usize, &Progress) -> Result<Vec<u8>, DataError> + Sync,
) -> Result<Vec<Bytes>, DataError> {
    let saved = load(objects, kind, options, is_of)?;
    let missing: Vec<usize> = (0..objects.len()).filter(|object| saved[*object].is_none()).collect();
    if missing.is_empty() {
        return Ok(saved.into_iter().flatten().collect());
    }
    let progress = Progress::new(
        "indexing",
        missing.iter().fold(0, |all: u64, object| all.saturating_add(objects.bytes(*object))),
    );
    let _shown = options.busy.shown_in(&progress);
    let mut made = in_parallel(&missing, |object| make(*object, &progress))?.into_iter();
    let made: Vec<Bytes> =
        saved.into_iter().filter_map(|saved| saved.or_else(|| made.next().map(Bytes::from))).collect();
    if let Err(error) = save(objects, kind, options, &made) {
        log::warn!("{error}. Until then each process makes the index again");
    }
    Ok(made)
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
mod tests;
