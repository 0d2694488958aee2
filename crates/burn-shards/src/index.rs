//! Saved indices: what was found out about each object, in one file for a data set.
//!
//! The file has a head, a table of the objects, and a part for each object. A part holds what the format put there. It is
//! void if the size or the tag of its object has changed. Another object may have the same, as when files are shipped with their
//! index. So some of its entries are compared with those of the object, unless it is the very file that the part was saved for.
//! All numbers are little-endian.

mod bound;
mod file;

use super::{
    error::DataError,
    options::Options,
    parallel::{in_parallel, in_parallel_by},
    progress::Progress,
    spelling::Spelling,
    store::{Object, Objects},
};
use crate::files;
use bytes::Bytes;
pub(crate) use file::{IndexKind, Saved};
use file::{Marks, parts, write};
use fnv::FnvHasher;
use std::{
    collections::BTreeSet,
    fs::File,
    hash::Hasher,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// An index has at most this number of bytes for each byte of its objects, and [`SMALL_INDEX`] for each object and for
/// its head.
const INDEX_BYTES_EACH: u64 = 8;
const SMALL_INDEX: u64 = 64 << 10;

/// Returns the part of each object, as far as one was saved and the object has not changed.
pub(crate) fn load(objects: &Objects, kind: IndexKind, options: &Options) -> Vec<Option<Saved>> {
    let none = || vec![None; objects.len()];
    let Some(Place { path, marks }) = Place::of(objects, kind, options) else { return none() };
    match files::with_room(|| read(&path, objects)) {
        Ok(file) => {
            if is_own(objects, options) {
                bound::note_use(&path);
            }
            parts(Bytes::from(file), objects.list(), &marks, kind).unwrap_or_else(|| {
                log::warn!("{} is no index of these files, or is damaged: it is made again", path.display());
                none()
            })
        }
        Err(_) => none(),
    }
}

/// Reads a file, but no more bytes than any index of these objects has: the file may be sparse.
fn read(path: &Path, objects: &Objects) -> io::Result<Vec<u8>> {
    let most = |object: &Object| object.bytes.saturating_mul(INDEX_BYTES_EACH).saturating_add(SMALL_INDEX);
    let most = objects.list().iter().fold(SMALL_INDEX, |all, object| all.saturating_add(most(object)));
    let mut file = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut file)?;
    Ok(file)
}

/// Saves a part for each object.
pub(crate) fn save(objects: &Objects, kind: IndexKind, options: &Options, parts: &[Bytes]) -> Result<(), DataError> {
    let Some(Place { path, marks }) = Place::of(objects, kind, options) else { return Ok(()) };
    let refused = |source| DataError::Save { path: path.clone(), source };
    write(&path, objects.list(), &marks, kind, parts).map_err(refused)?;
    if is_own(objects, options)
        && let Err(error) = bound::remove_old(&path)
    {
        log::warn!("old indices beside {} are not removed: {error}", path.display());
    }
    Ok(())
}

/// Whether indices are saved in a folder of the user's cache.
fn is_own(objects: &Objects, options: &Options) -> bool {
    options.index_dir.is_none() && objects.is_own
}

/// The number of entries that are drawn, besides the first and the last.
const DRAWN_ENTRIES: u64 = 3;
/// The number of objects that are looked at at once, where each read is a request.
const LOOKS_AT_ONCE: usize = 64;

/// Which entries of a saved part are checked against its object: the first, the last, and three that its size and tag draw.
/// An index is shipped with its objects, and another object may have the same size and time.
pub(crate) fn checked(object: &Object, entries: usize) -> impl Iterator<Item = usize> + use<> {
    let (bytes, tag, last) = (object.bytes, object.tag, entries.saturating_sub(1));
    let drawn = (0..DRAWN_ENTRIES).map(move |number| {
        let mut hasher = FnvHasher::default();
        [bytes, tag, number].into_iter().for_each(|word| hasher.write_u64(word));
        (hasher.finish() % entries.max(1) as u64) as usize
    });
    let all: BTreeSet<usize> = [0, last].into_iter().chain(drawn).filter(|entry| *entry < entries).collect();
    all.into_iter()
}

/// Calls `one` for each saved part: on all threads of the machine, or on more threads where each read is a request.
pub(crate) fn look<I: Sync, O: Send>(
    objects: &Objects,
    saved: &[I],
    one: impl Fn(&I) -> Result<O, DataError> + Sync,
) -> Result<Vec<O>, DataError> {
    if objects.is_far() { in_parallel_by(LOOKS_AT_ONCE, saved, one) } else { in_parallel(saved, one) }
}

/// Takes away the parts that were saved of other objects. `is_of` tells whether a part is of the object of this number.
/// It is not asked where the object is the same.
fn check(
    objects: &Objects,
    parts: &mut [Option<Saved>],
    is_of: impl Fn(usize, &Bytes) -> Result<bool, DataError> + Sync,
) -> Result<(), DataError> {
    let unsure = |saved: &Option<Saved>| Some(saved.as_ref().filter(|saved| !saved.is_same)?.part.clone());
    let saved: Vec<(usize, Bytes)> =
        parts.iter().enumerate().filter_map(|(object, part)| Some((object, unsure(part)?))).collect();
    let are_of = look(objects, &saved, |(object, part)| is_of(*object, part))?;
    for ((object, _), is_of) in saved.into_iter().zip(are_of) {
        if !is_of {
            log::warn!("the saved index of {} is of another file: it is made again", objects.name(object));
            parts[object] = None;
        }
    }
    Ok(())
}

/// Returns the part of each object: saved ones of which `is_of` is true, and others made by `make` on several threads, with a
/// progress bar. If the index cannot be saved, the log says so.
pub(crate) fn make(
    objects: &Objects,
    kind: IndexKind,
    options: &Options,
    is_of: impl Fn(usize, &Bytes) -> Result<bool, DataError> + Sync,
    make: impl Fn(usize, &Progress) -> Result<Vec<u8>, DataError> + Sync,
) -> Result<Vec<Bytes>, DataError> {
    let mut saved = load(objects, kind, options);
    check(objects, &mut saved, is_of)?;
    let missing: Vec<usize> = (0..objects.len()).filter(|object| saved[*object].is_none()).collect();
    if missing.is_empty() {
        return Ok(saved.into_iter().flatten().map(|saved| saved.part).collect());
    }
    let progress = Progress::new(
        "indexing",
        missing.iter().fold(0, |all: u64, object| all.saturating_add(objects.bytes(*object))),
    );
    let _shown = options.busy.shown_in(&progress);
    let mut made = in_parallel(&missing, |object| make(*object, &progress))?.into_iter();
    let made = saved
        .into_iter()
        .map(|saved| saved.map(|saved| saved.part).or_else(|| made.next().map(Bytes::from)).unwrap_or_default())
        .collect::<Vec<_>>();
    if let Err(error) = save(objects, kind, options, &made) {
        log::warn!("{error}. Until then each process makes the index again");
    }
    Ok(made)
}

/// Where the index of some objects is saved.
struct Place {
    path: PathBuf,
    /// The names are hashed as they are, however they are spelled.
    marks: Marks,
}

impl Place {
    fn of(objects: &Objects, kind: IndexKind, options: &Options) -> Option<Self> {
        let folder = options.index_dir.as_ref().or(objects.folder.as_ref())?;
        let mut spelling = Spelling::new(options.index_dir.is_none().then_some(folder));
        let (mut all, mut names) = (FnvHasher::default(), Vec::with_capacity(objects.len()));
        for object in objects.list() {
            let (name, mut hasher) = (spelling.of(&object.name), FnvHasher::default());
            hasher.write(name.as_bytes());
            names.push(hasher.finish());
            all.write(name.as_bytes());
            all.write_u8(0);
        }
        let marks = Marks { names, identities: objects.identities() };
        let kind = String::from_utf8_lossy(&kind.0[..7]).trim_end().to_string();
        Some(Self { path: folder.join(format!("{}{kind}-{:016x}.index", bound::NAME, all.finish())), marks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    const KIND: IndexKind = IndexKind(b"test   1");

    fn path(objects: &Objects, kind: IndexKind, options: &Options) -> Option<PathBuf> {
        Place::of(objects, kind, options).map(|place| place.path)
    }

    /// The parts that were saved.
    pub(super) fn loaded(objects: &Objects, kind: IndexKind, options: &Options) -> Vec<Option<Bytes>> {
        load(objects, kind, options).into_iter().map(|saved| saved.map(|saved| saved.part)).collect()
    }

    fn objects(folder: &Path, names: &[&str]) -> Objects {
        let paths = names.iter().map(|name| folder.join(name)).collect();
        Objects::local(paths).unwrap()
    }

    #[test]
    fn what_was_saved_is_found_until_its_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let options = Options::default();
        let made = AtomicUsize::new(0);
        let index = || {
            let objects = objects(folder.path(), &["a", "b"]);
            let make_one = |object, _: &Progress| {
                made.fetch_add(1, Relaxed);
                objects.read(object, 0..objects.bytes(object))
            };
            make(&objects, KIND, &options, |_, _| Ok(true), make_one).unwrap()
        };
        assert_eq!((index(), made.load(Relaxed)), (vec![Bytes::from("a"), Bytes::from("b")], 2));
        assert_eq!((index(), made.load(Relaxed)), (vec![Bytes::from("a"), Bytes::from("b")], 2));
        fs::write(folder.path().join("b"), "new").unwrap();
        assert_eq!((index(), made.load(Relaxed)), (vec![Bytes::from("a"), Bytes::from("new")], 3));
    }

    #[test]
    fn a_part_of_another_file_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let (options, objects) = (Options::default(), objects(folder.path(), &["a", "b", "c"]));
        save(&objects, KIND, &options, &["a", "x", "c"].map(Bytes::from)).unwrap();
        let (checked, made) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let is_of = |object, part: &Bytes| {
            checked.fetch_add(1, Relaxed);
            Ok(*part == objects.read(object, 0..1)?)
        };
        let make_one = |object, _: &Progress| {
            made.fetch_add(1, Relaxed);
            objects.read(object, 0..1)
        };
        for _ in 0..2 {
            let parts = make(&objects, KIND, &options, is_of, make_one).unwrap();
            assert_eq!(parts, ["a", "b", "c"].map(Bytes::from));
        }
        assert_eq!((checked.into_inner(), made.into_inner()), (6, 1));
    }

    /// Another file in the place of one, other bytes in one, and one that stays.
    #[cfg(target_os = "linux")]
    #[test]
    fn only_a_file_that_was_not_touched_since_is_not_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let put = |name: &str, text: &str| {
            fs::write(at(name), text).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
            File::options().write(true).open(at(name)).unwrap().set_modified(time).unwrap();
        };
        let checked = || {
            let checked = parking_lot::Mutex::new(Vec::new());
            let is_of = |object, _: &Bytes| {
                checked.lock().push(object);
                Ok(true)
            };
            make(&objects(folder.path(), &["a", "b", "c"]), KIND, &Options::default(), is_of, |_, _| Ok(vec![1]))
                .unwrap();
            let mut checked = checked.into_inner();
            checked.sort();
            checked
        };
        let pass = || std::thread::sleep(std::time::Duration::from_millis(2100));
        ["a", "b", "c"].iter().for_each(|name| put(name, "old"));
        pass();
        assert_eq!((checked(), checked()), (vec![], vec![]), "it was made, and then it is the same");
        put("new", "new");
        fs::rename(at("new"), at("a")).unwrap();
        put("b", "new");
        assert_eq!(checked(), [0, 1]);
        pass();
        assert_eq!(checked(), [0, 1]);
    }

    #[test]
    fn the_first_the_last_and_three_drawn_entries_are_checked() {
        let object = |tag| Object { name: "a".into(), bytes: 100, tag };
        let of = |tag, entries| checked(&object(tag), entries).collect::<Vec<_>>();
        assert_eq!((of(1, 0), of(1, 1)), (vec![], vec![0]));
        let drawn: Vec<usize> =
            (0..50).flat_map(|tag| of(tag, 1000)).filter(|entry| ![0, 999].contains(entry)).collect();
        let seven = of(7, 1000);
        assert!(seven.first() == Some(&0) && seven.last() == Some(&999) && drawn.len() > 140 && seven == of(7, 1000));
        assert!((0..4).all(|part| drawn.iter().any(|entry| entry / 250 == part)), "{drawn:?}");
    }

    #[test]
    fn an_index_of_other_files_or_of_another_kind_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let (options, a) = (Options::default(), objects(folder.path(), &["a"]));
        let b = objects(folder.path(), &["b"]);
        save(&a, KIND, &options, &[Bytes::from("part")]).unwrap();
        fs::rename(path(&a, KIND, &options).unwrap(), path(&b, KIND, &options).unwrap()).unwrap();
        assert_eq!(loaded(&b, KIND, &options), [None]);
        save(&a, KIND, &options, &[Bytes::from("part")]).unwrap();
        let other = IndexKind(b"test   2");
        fs::rename(path(&a, KIND, &options).unwrap(), path(&a, other, &options).unwrap()).unwrap();
        assert_eq!(loaded(&a, other, &options), [None]);
    }

    #[test]
    fn of_an_index_with_a_hole_only_a_part_is_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "a").unwrap();
        let (options, a) = (Options::default(), objects(folder.path(), &["a"]));
        save(&a, KIND, &options, &[Bytes::from("part")]).unwrap();
        let path = path(&a, KIND, &options).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(1 << 42).unwrap();
        assert!(read(&path, &a).unwrap().len() as u64 <= 2 * SMALL_INDEX + INDEX_BYTES_EACH);
        assert_eq!(loaded(&a, KIND, &options), [Some(Bytes::from("part"))]); // its table says where it ends
    }

    #[test]
    fn objects_of_one_name_are_told_apart_by_their_tags() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let object = |tag| Object { name: "https://host/get?..".into(), bytes: 3, tag };
        let marks = |identities: &[u64]| Marks { names: vec![7; identities.len()], identities: identities.into() };
        let two = ["one", "two"].map(Bytes::from);
        write(&path, &[object(1), object(2)], &marks(&[8, 0]), KIND, &two).unwrap();
        let file = Bytes::from(fs::read(&path).unwrap());
        let saved = |part: &'static str, is_same| Some(Saved { part: part.into(), is_same });
        for (identities, is_same) in [([0, 9, 8], true), ([5, 9, 5], false), ([0; 3], false)] {
            let objects = [object(2), object(3), object(1)];
            let found = parts(file.clone(), &objects, &marks(&identities), KIND).unwrap();
            assert_eq!(found, [saved("two", false), None, saved("one", is_same)]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn files_share_an_index_however_their_names_are_spelled() {
        let (home, indices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (folder, link) = (home.path().join("data"), home.path().join("link"));
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        ["a", "b"].iter().for_each(|name| fs::write(folder.join(name), "same").unwrap());
        std::os::unix::fs::symlink("a", folder.join("other name")).unwrap();
        let up = std::env::current_dir().unwrap().components().skip(1).map(|_| "../").collect::<String>();
        let relative = format!("{up}{}", folder.strip_prefix("/").unwrap().display());
        let a = ["data/a", "data/./a", "data/../data/a", "data//a", "link/a", "data/other name"];
        let a = a.map(|name| home.path().join(name)).into_iter().chain([Path::new(&relative).join("a")]);
        for shared in [false, true] {
            let index_dir = shared.then(|| indices.path().to_path_buf());
            let options = Options { index_dir, ..Options::default() };
            for name in a.clone() {
                let objects = Objects::local(vec![name]).unwrap();
                save(&objects, KIND, &options, &[Bytes::from("a")]).unwrap();
            }
            let there = if shared { indices.path() } else { &folder };
            let count =
                || fs::read_dir(there).unwrap().flatten().filter(|file| file.path().extension().is_some()).count();
            assert_eq!(count(), 1);
            // A file of the same size and time has an index of its own.
            let b = objects(&folder, &["b"]);
            assert_eq!(loaded(&b, KIND, &options), [None]);
            save(&b, KIND, &options, &[Bytes::from("b")]).unwrap();
            assert_eq!(count(), 2);
            assert_eq!(loaded(&objects(&link, &["a"]), KIND, &options), [Some(Bytes::from("a"))]);
        }
    }

    #[test]
    fn an_index_beside_its_files_is_moved_with_them() {
        let home = tempfile::tempdir().unwrap();
        let (old, new) = (home.path().join("old"), home.path().join("new"));
        fs::create_dir(&old).unwrap();
        fs::write(old.join("a"), "a").unwrap();
        save(&objects(&old, &["a"]), KIND, &Options::default(), &[Bytes::from("part")]).unwrap();
        fs::rename(&old, &new).unwrap();
        assert_eq!(loaded(&objects(&new, &["a"]), KIND, &Options::default()), [Some(Bytes::from("part"))]);
    }

    #[test]
    fn a_damaged_index_gives_what_was_saved_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "a").unwrap();
        let (options, a) = (Options::default(), objects(folder.path(), &["a"]));
        save(&a, KIND, &options, &[Bytes::from("0123456789")]).unwrap();
        let path = path(&a, KIND, &options).unwrap();
        let good = fs::read(&path).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..2000 {
            let mut bad = good.clone();
            match rng.random_range(0..3) {
                0 => bad.truncate(rng.random_range(0..good.len())),
                1 => bad[rng.random_range(0..good.len())] ^= 1 << rng.random_range(0..8),
                _ => bad.extend_from_slice(&good[..rng.random_range(0..good.len())]),
            }
            fs::write(&path, bad).unwrap();
            let part = loaded(&a, KIND, &options).remove(0);
            assert!(part.is_none_or(|part| part == "0123456789"));
        }
    }
}
