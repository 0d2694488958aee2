//! Replaces a file in one step, while other processes may read it or write it too.

use crate::system::files;
use std::{
    fs::{self, File, OpenOptions},
    hash::{BuildHasher, Hasher, RandomState},
    io,
    path::Path,
    process,
};

/// The extension of a file that is being written.
pub(crate) const TEMPORARY: &str = "tmp";

/// Writes a file under a temporary name, and then renames it to `place`. So no reader sees half of a file. If several threads or processes
/// do this at the same time, the last one wins. `write` may keep the file, to read what it has written. `refused` converts the system's error
/// to the caller's. Returns what `write` returns.
pub fn replace<T, E>(
    place: &Path,
    refused: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    let new = |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).open(path);
    let create = |path: &Path| files::with_room(|| new(path));
    replace_by(place, create, refused, write)
}

/// As [`replace`], but `create` makes the temporary file, which must not exist.
pub(crate) fn replace_by<T, E>(
    place: &Path,
    create: impl FnOnce(&Path) -> io::Result<File>,
    refused: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    let unique = RandomState::new().build_hasher().finish();
    let temporary = place.with_extension(format!("{}-{unique:016x}.{TEMPORARY}", process::id()));
    let file = create(&temporary).map_err(&refused);
    let rename = |written| fs::rename(&temporary, place).map_err(&refused).map(|()| written);
    let done = file.and_then(|mut file| write(&mut file)).and_then(rename);
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_fails_leaves_the_file_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("file");
        let put = |text: &str, end: io::Result<()>| {
            replace(&place, |error| error, |file| file.write_all(text.as_bytes()).and(end))
        };
        put("old", Ok(())).unwrap();
        assert!(put("new", Err(io::Error::other("no"))).is_err());
        assert_eq!(fs::read_to_string(&place).unwrap(), "old");
        put("new", Ok(())).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }
}
