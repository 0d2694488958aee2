//! A cache on a machine that others use too.

use crate::{
    formats::{Format, ROWS, Row, bytes},
    server::{Fault, Server, folder},
};
use burn::data::dataset::Dataset;
use burn_shards::Rows;
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
};

/// A web server with JSON lines, a folder for a cache, and one for indices.
struct Set {
    server: Server,
    folder: tempfile::TempDir,
}

impl Set {
    fn new() -> Self {
        let written = tempfile::tempdir().unwrap();
        drop(Format::Jsonl.open(written.path()));
        Self { server: Server::new(folder(written.path()), |_| Fault::None), folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Reads all, and checks each byte.
    fn read(&self, name: &str) {
        let rows = Rows::<Row>::jsonl(self.server.url("/{0..1}.jsonl")).index_dir(self.path("indices"));
        let rows = rows.cache(self.path("cache"), 16 << 20).open().unwrap_or_else(|error| panic!("{name}: {error}"));
        (0..ROWS).for_each(|row| assert!(rows.get(row).unwrap().bytes == bytes(row), "{name}: row {row}"));
    }
}

/// All files and folders in a folder.
fn all(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { [vec![path.clone()], all(&path)].concat() } else { vec![path] })
        .collect()
}

#[test]
fn a_planted_link_in_a_cache_is_not_followed() {
    let set = Set::new();
    set.read("new");
    let (victim, elsewhere) = (set.path("victim"), set.path("elsewhere"));
    for path in all(&set.path("cache")) {
        let (name, aside) = (path.display().to_string(), set.path("aside"));
        fs::rename(&path, &aside).unwrap();
        for (target, text) in [(&victim, Some("precious")), (&elsewhere, None)] {
            text.into_iter().for_each(|text| fs::write(target, text).unwrap());
            symlink(target, &path).unwrap();
            set.read(&name);
            assert_eq!(fs::read_to_string(target).ok().as_deref(), text, "{name}");
            fs::symlink_metadata(&path).into_iter().for_each(|_| _ = fs::remove_file(&path));
        }
        if aside.is_dir() {
            fs::create_dir(&elsewhere).unwrap();
            symlink(&elsewhere, &path).unwrap();
            set.read(&name);
            assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{name}");
            fs::remove_file(&path).unwrap();
            fs::remove_dir(&elsewhere).unwrap();
        }
        _ = fs::remove_file(&path);
        fs::rename(&aside, &path).unwrap();
    }
    set.read("as before");
}

#[test]
fn a_cache_that_others_can_write_to_is_not_used() {
    let set = Set::new();
    let cache = set.path("cache");
    fs::create_dir(&cache).unwrap();
    for mode in [0o777, 0o1777, 0o770] {
        fs::set_permissions(&cache, fs::Permissions::from_mode(mode)).unwrap();
        set.read(&format!("mode {mode:o}"));
        assert_eq!(all(&cache), Vec::<PathBuf>::new(), "mode {mode:o}");
    }
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o755)).unwrap();
    set.read("one's own");
    assert!(!all(&cache).is_empty());
    // Only root can give a folder away.
    if chown(&cache, Some(54_321), None).is_ok() {
        let before = all(&cache);
        let written = || before.iter().map(|path| fs::metadata(path).unwrap().modified().unwrap()).collect::<Vec<_>>();
        let times = written();
        set.read("somebody else's");
        assert!(all(&cache) == before && written() == times);
    }
}

#[test]
fn what_a_cache_makes_is_for_its_owner_alone() {
    let set = Set::new();
    set.read("new");
    let cache = set.path("cache");
    for path in [all(&cache), vec![cache]].concat() {
        let mode = fs::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o} of {}", path.display());
    }
}
