//! Removes old indices from a folder of the user's cache, where nothing else does.

use crate::system::replace::TEMPORARY;
use std::{
    fs, io,
    path::Path,
    time::{Duration, SystemTime},
};

/// How the names of indices begin.
pub(super) const NAME: &str = ".burn-pinned-";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// An index that was not used for longer is removed.
const LONGEST_UNUSED: Duration = DAY.saturating_mul(90);
/// The most bytes of all indices together. The most recently used stay.
const MOST_BYTES: u64 = 10 << 30;

/// Notes that an index is used. If the system refuses that, the index looks older than it is.
pub(super) fn note_use(path: &Path) {
    let _ = fs::File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
}

/// Removes indices beside this one, which was just saved: those that were not used for 90 days, and the least recently used ones beyond 10
/// GiB. A half-written index of a killed process is removed after a day.
pub(super) fn remove_old(saved: &Path) -> io::Result<()> {
    let (now, mut all) = (SystemTime::now(), Vec::new());
    for entry in saved.parent().map(fs::read_dir).transpose()?.into_iter().flatten() {
        let (entry, saved) = (entry?, saved.file_name());
        let Ok(meta) = entry.metadata() else { continue }; // another process has removed it
        if entry.file_name().to_string_lossy().starts_with(NAME) && meta.is_file() {
            let age = now.duration_since(meta.modified()?).unwrap_or_default();
            all.push((Some(&*entry.file_name()) != saved, age, meta.len(), entry.path()));
        }
    }
    all.sort();
    let mut bytes = 0u64;
    for (is_other, age, length, path) in all {
        bytes = bytes.saturating_add(length);
        let is_half = path.extension().is_some_and(|end| end == TEMPORARY) && age > DAY;
        if is_other && (age > LONGEST_UNUSED || is_half || bytes > MOST_BYTES) {
            let _ = fs::remove_file(path); // another process may do the same
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{DAY, MOST_BYTES, NAME};
    use crate::{
        source::index::{
            save,
            tests::{loaded, parts},
        },
        store::{Objects, options::Options},
    };
    use bytes::Bytes;
    use std::{
        fs::{self, File},
        path::Path,
        time::SystemTime,
    };

    const KIND: &[u8; 8] = b"test   1";

    /// Makes an index of this age and size.
    fn index(folder: &Path, name: &str, days: u32, bytes: u64) {
        let file = File::create(folder.join(name)).unwrap();
        file.set_len(bytes).unwrap();
        file.set_modified(SystemTime::now() - days * DAY).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut all: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        all.sort();
        all
    }

    /// Objects whose indices are saved in a folder of the user's cache, or beside them.
    fn objects(shards: &Path, folder: &Path, is_own: bool) -> Objects {
        fs::write(shards.join("a"), "a").unwrap();
        let mut objects = Objects::local(vec![shards.join("a")]).unwrap();
        (objects.folder, objects.is_own) = (Some(folder.into()), is_own);
        objects
    }

    #[test]
    fn old_indices_go_from_the_users_cache_when_another_one_is_saved() {
        let [shards, own, beside] = [0; 3].map(|_| tempfile::tempdir().unwrap());
        let old = ["old", "new", "large", "largest"].map(|name| format!("{NAME}{name}.index"));
        for folder in [&own, &beside] {
            index(folder.path(), &old[0], 91, 10);
            index(folder.path(), &old[1], 3, 10);
            index(folder.path(), &old[2], 5, MOST_BYTES / 2);
            index(folder.path(), &old[3], 7, MOST_BYTES / 2);
            index(folder.path(), &format!("{NAME}x.7-00.tmp"), 2, 10);
            index(folder.path(), &format!("{NAME}y.8-00.tmp"), 0, 10);
            index(folder.path(), "photo.jpg", 1000, 10);
            let objects = objects(shards.path(), folder.path(), folder.path() == own.path());
            save(&objects, KIND, &Options::default(), &parts(["part"])).unwrap();
            assert_eq!(loaded(&objects, KIND, &Options::default()), [Some(Bytes::from("part"))]);
        }
        let left = names(own.path());
        assert!(left.contains(&old[1]) && left.contains(&old[2]) && left.contains(&"photo.jpg".into()), "{left:?}");
        assert!(!left.contains(&old[0]) && !left.contains(&old[3]) && left.len() == 5, "{left:?}");
        assert_eq!(names(beside.path()).len(), 8, "indices beside shards are nobody's to remove");
    }

    #[test]
    fn an_index_that_is_used_stays() {
        let [shards, own] = [0; 2].map(|_| tempfile::tempdir().unwrap());
        let (objects, options) = (objects(shards.path(), own.path(), true), Options::default());
        save(&objects, KIND, &options, &parts(["part"])).unwrap();
        let path = own.path().join(&names(own.path())[0]);
        File::options().write(true).open(&path).unwrap().set_modified(SystemTime::now() - 100 * DAY).unwrap();
        assert_eq!(loaded(&objects, KIND, &options), [Some(Bytes::from("part"))]);
        save(&objects, b"other  1", &options, &parts(["part"])).unwrap();
        assert_eq!(loaded(&objects, KIND, &options), [Some(Bytes::from("part"))]);
    }
}
