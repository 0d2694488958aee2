//! Whether a file is the user's own. On a shared machine, another user may have put a folder or a link in the place of a cache. Then data
//! would be written elsewhere, and foreign data would be trusted.

use crate::system::files;
use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io,
    path::{Path, PathBuf},
};

/// A file may belong to another user. The inner error of an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("{} is a link, or not of this user alone (if it is your folder, `chmod 700` it)", .0.display())]
struct ForeignFile(PathBuf);

/// Whether an error says that a file may belong to another user.
#[cfg(any(feature = "remote", test))]
pub(crate) fn is_foreign(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<ForeignFile>())
}

/// Makes the folder of a cache, private to this user, unless it exists. A link to it must be the user's own too.
pub(super) fn top(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    match fs::symlink_metadata(path) {
        Ok(link) if link.is_symlink() => own(path, &link, true).and_then(|()| inner(&fs::canonicalize(path)?)),
        _ => inner(path),
    }
}

/// Makes a folder inside a cache, private to this user, unless it exists. Nothing in a cache may be a link.
pub(super) fn inner(path: &Path) -> io::Result<()> {
    let builder = &mut DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(builder, 0o700);
    let made = builder.create(path); // an error if it exists
    fs::symlink_metadata(path).map_or(made, |meta| own(path, &meta, meta.is_dir()))
}

/// Creates a new file, and opens it for writing.
pub(super) fn create(path: &Path) -> io::Result<File> {
    file(path, OpenOptions::new().write(true).create_new(true))
}

/// Opens a file for reading and writing, and creates it if necessary. Locks of network file systems need both modes.
pub(super) fn open(path: &Path) -> io::Result<File> {
    file(path, OpenOptions::new().create(true).truncate(false).read(true).write(true))
}

/// Opens a file to read it.
pub(super) fn to_read(path: &Path) -> io::Result<File> {
    file(path, OpenOptions::new().read(true))
}

fn file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    }
    let refused = |error| if path.is_symlink() { io::Error::other(ForeignFile(path.into())) } else { error };
    let file = files::with_room(|| options.open(path)).map_err(refused)?;
    let meta = file.metadata()?;
    own(path, &meta, meta.is_file()).map(|()| file)
}

/// Checks that a path is of the right kind, belongs to the user alone, and has no other hard links.
fn own(path: &Path, meta: &Metadata, is_kind: bool) -> io::Result<()> {
    #[cfg(unix)]
    let is_kind = {
        use std::os::unix::fs::MetadataExt;
        let is_shared = (meta.is_file() && meta.nlink() > 1) || (meta.is_dir() && meta.mode() & 0o022 != 0);
        is_kind && !is_shared && meta.uid() == rustix::process::geteuid().as_raw()
    };
    #[cfg(not(unix))]
    let _ = meta;
    if is_kind { Ok(()) } else { Err(io::Error::other(ForeignFile(path.into()))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_locked_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert_eq!(to_read(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        open(&path).unwrap().write_all(b"a").unwrap();
        open(&path).unwrap().write_all(b"b").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"b");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_refused_unless_the_cache_itself_is_behind_one() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "").unwrap();
        symlink(at("file"), at("soft")).unwrap();
        fs::hard_link(at("file"), at("hard")).unwrap();
        for name in ["soft", "hard"] {
            assert!(
                is_foreign(&open(&at(name)).unwrap_err()) && is_foreign(&to_read(&at(name)).unwrap_err()),
                "{name}"
            );
        }
        inner(&at("made")).unwrap();
        symlink(at("made"), at("link")).unwrap();
        assert!(is_foreign(&inner(&at("link")).unwrap_err()));
        top(&at("link")).unwrap();
        top(&at("a/b/c")).unwrap();
    }
}
