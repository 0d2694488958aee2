//! Indices of made-up objects: saved, loaded, checked, removed.

#[cfg(target_os = "linux")]
pub(crate) mod holes;
mod reads;

use super::*;
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

const KIND: &[u8; 8] = b"test   1";

fn path(objects: &Objects, kind: &[u8; 8], options: &Options) -> Option<PathBuf> {
    IndexPlace::of(objects, kind, options).map(|place| place.path)
}

/// Parts without rows.
pub(super) fn parts<const N: usize>(parts: [&'static str; N]) -> Vec<MadePart> {
    parts.map(|part| MadePart::new(0, Bytes::new(), part.as_bytes())).into()
}

fn whole(part: &IndexPart) -> Bytes {
    part.read(0..part.len()).unwrap().into_owned().into()
}

/// The parts that were saved.
pub(super) fn loaded(objects: &Objects, kind: &[u8; 8], options: &Options) -> Vec<Option<Bytes>> {
    let index = load(objects, kind, options);
    let part = |object| {
        let part = index.as_ref()?.part(objects, object, |_| Ok(true)).ok()?;
        Some(part.read(0..part.len()).ok()?.into_owned().into())
    };
    (0..objects.len()).map(part).collect()
}

/// An index whose parts are the first bytes of their objects. Counts how many are compared, and made.
struct FirstBytes<'a> {
    objects: &'a Objects,
    checked: AtomicUsize,
    made: AtomicUsize,
}

impl<'a> FirstBytes<'a> {
    fn of(objects: &'a Objects) -> Self {
        Self { objects, checked: AtomicUsize::new(0), made: AtomicUsize::new(0) }
    }

    fn is_of(&self, object: usize, part: &IndexPart) -> Result<bool, DataError> {
        self.checked.fetch_add(1, Relaxed);
        Ok(whole(part) == self.objects.read(object, 0..1)?)
    }

    fn index(&self) -> Index {
        let make_one = |object, _: &Progress| {
            self.made.fetch_add(1, Relaxed);
            Ok(MadePart::new(0, Bytes::new(), &self.objects.read(object, 0..1)?))
        };
        make(self.objects, KIND, &Options::default(), |object, part| self.is_of(object, part), make_one).unwrap()
    }
}

/// All parts of an index that was made.
fn of(index: &Index, objects: &Objects) -> Vec<Bytes> {
    let part = |object| whole(&index.part(objects, object, |_| Ok(true)).unwrap());
    (0..objects.len()).map(part).collect()
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
            Ok(MadePart::new(0, Bytes::new(), &objects.read(object, 0..objects.bytes(object))?))
        };
        of(&make(&objects, KIND, &options, |_, _| Ok(true), make_one).unwrap(), &objects)
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
    save(&objects, KIND, &options, &parts(["a", "b", "x"])).unwrap(); // the last one is always compared
    let bytes = FirstBytes::of(&objects);
    for _ in 0..2 {
        assert_eq!(of(&bytes.index(), &objects), ["a", "b", "c"].map(Bytes::from));
    }
    // The one in the middle may be compared each time, or only when another is wrong.
    assert!((6..=7).contains(&bytes.checked.into_inner()) && bytes.made.into_inner() == 1);
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
        let checked = crate::system::locks::Mutex::new(Vec::new());
        let is_of = |object, _: &IndexPart| {
            checked.lock().push(object);
            Ok(true)
        };
        let make_one = |_, _: &Progress| Ok(MadePart::new(0, Bytes::new(), b"1"));
        make(&objects(folder.path(), &["a", "b", "c"]), KIND, &Options::default(), is_of, make_one).unwrap();
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

/// Also if it was just written.
#[test]
fn an_object_whose_tag_identifies_its_bytes_is_not_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "a").unwrap();
    let mut objects = objects(folder.path(), &["a"]);
    objects.is_exact = true;
    let made = AtomicUsize::new(0);
    for _ in 0..2 {
        let is_of = |_, _: &IndexPart| panic!("it is the same");
        let make_one = |_, _: &Progress| Ok(MadePart::new(made.fetch_add(1, Relaxed), "", b"part"));
        let index = make(&objects, KIND, &Options::default(), is_of, make_one).unwrap();
        assert_eq!(whole(&index.part(&objects, 0, |part| is_of(0, part)).unwrap()), "part");
    }
    assert_eq!(made.into_inner(), 1);
}

#[test]
fn the_first_the_last_and_three_drawn_entries_are_checked() {
    let object = |tag| Object { name: "a".into(), bytes: 100, tag };
    let of = |tag, entries| checked(&object(tag), entries).collect::<Vec<_>>();
    assert_eq!((of(1, 0), of(1, 1)), (vec![], vec![0]));
    let drawn: Vec<usize> = (0..50).flat_map(|tag| of(tag, 1000)).filter(|entry| ![0, 999].contains(entry)).collect();
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
    save(&a, KIND, &options, &parts(["part"])).unwrap();
    fs::rename(path(&a, KIND, &options).unwrap(), path(&b, KIND, &options).unwrap()).unwrap();
    assert_eq!(loaded(&b, KIND, &options), [None]);
    save(&a, KIND, &options, &parts(["part"])).unwrap();
    let other = b"test   2";
    fs::rename(path(&a, KIND, &options).unwrap(), path(&a, other, &options).unwrap()).unwrap();
    assert_eq!(loaded(&a, other, &options), [None]);
}

#[test]
fn of_an_index_that_lies_about_its_size_nothing_is_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "a").unwrap();
    let (options, a) = (Options::default(), objects(folder.path(), &["a"]));
    save(&a, KIND, &options, &parts(["part"])).unwrap();
    let path = path(&a, KIND, &options).unwrap();
    let good = fs::read(&path).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(1 << 42).unwrap();
    assert_eq!(loaded(&a, KIND, &options), [None]);
    // A table that is right, with words of the line or of the tail that lie.
    let (table, tail) = (24, good.len() - 24);
    let lie = |at: usize, word: u64| {
        let mut bad = good.clone();
        bad[at..at + 8].copy_from_slice(&word.to_le_bytes());
        let checksum = u64::from(crc32fast::hash(&bad[table..tail]));
        bad[tail + 16..].copy_from_slice(&checksum.to_le_bytes());
        fs::write(&path, bad).unwrap();
        loaded(&a, KIND, &options)
    };
    assert_eq!(lie(table + 6 * 8, 8), [Some(Bytes::from("part"))], "as many rows as bytes");
    for word in [1 << 60, 1 << 61, u64::MAX / 64 + 1, u64::MAX - 15, u64::MAX] {
        for at in (4..9).map(|word| table + word * 8).chain([tail, tail + 8]) {
            assert_eq!(lie(at, word), [None], "{word} at {at}");
        }
    }
}

#[test]
fn objects_of_one_name_are_told_apart_by_their_tags() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let object = |tag| Object { name: "https://host/get?..".into(), bytes: 3, tag };
    let place = |identities: &[u64]| IndexPlace {
        path: path.clone(),
        mark: 0,
        names: vec![7; identities.len()],
        identities: identities.into(),
    };
    let (saved_for, marks) = ([object(1), object(2)], place(&[8, 0]));
    let mut file = Vec::new();
    let mut writer = IndexWriter::new(&mut file, &marks, &saved_for, KIND).unwrap();
    parts(["one", "two"])
        .iter()
        .enumerate()
        .for_each(|(object, part)| writer.add(object, &part.of_object("a")).unwrap());
    writer.end().unwrap();
    let saved = |part: &'static str, is_same| Some((Bytes::from(part), is_same));
    for (identities, is_same) in [([0, 9, 8], true), ([5, 9, 5], false), ([0; 3], false)] {
        let bytes = IndexBytes::Memory(file.clone().into());
        let index = file::read(bytes, &[2, 3, 1].map(object), &place(&identities), KIND).unwrap();
        let of = |line: &IndexLine| (index.bytes.read(line.range.start..line.range.end - 4).unwrap(), line.is_same);
        let found: Vec<_> = index.lines.iter().map(|line| line.as_ref().map(of)).collect();
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
            save(&objects, KIND, &options, &parts(["a"])).unwrap();
        }
        let there = if shared { indices.path() } else { &folder };
        let count = || fs::read_dir(there).unwrap().flatten().filter(|file| file.path().extension().is_some()).count();
        assert_eq!(count(), 1);
        // A file of the same size and time has an index of its own.
        let b = objects(&folder, &["b"]);
        assert_eq!(loaded(&b, KIND, &options), [None]);
        save(&b, KIND, &options, &parts(["b"])).unwrap();
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
    save(&objects(&old, &["a"]), KIND, &Options::default(), &parts(["part"])).unwrap();
    fs::rename(&old, &new).unwrap();
    assert_eq!(loaded(&objects(&new, &["a"]), KIND, &Options::default()), [Some(Bytes::from("part"))]);
}

#[test]
fn a_damaged_index_gives_what_was_saved_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "a").unwrap();
    let (options, a) = (Options::default(), objects(folder.path(), &["a"]));
    save(&a, KIND, &options, &parts(["0123456789"])).unwrap();
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
