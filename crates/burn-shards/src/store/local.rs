//! Local files. They are read, not mapped, so that a truncated file is an error, not a signal.

use super::{Object, ObjectChange, Store};
use crate::{
    error::DataError,
    system::files::{self, PooledFile},
};
#[cfg(target_os = "linux")]
use fnv::FnvHasher;
#[cfg(target_os = "linux")]
use std::hash::Hasher;
use std::{
    collections::HashMap,
    fs::{self, File, Metadata},
    io::{self, Read},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A file as it was when the data set was opened.
#[derive(Debug)]
pub(super) struct LocalFile {
    path: PathBuf,
    bytes: u64,
    /// The time of its last change.
    changed: u64,
    /// Its inode number, if the file system keeps it.
    node: Option<u64>,
    /// [`Store::identity`].
    identity: u64,
    /// Keeps the file open, if not too many are open.
    kept: Arc<PooledFile>,
}

/// Gets the size and times of each file.
pub(super) fn open(paths: Vec<PathBuf>) -> Result<(Vec<Object>, Vec<LocalFile>), DataError> {
    let mut disks = HashMap::new();
    let looked_at = paths.into_iter().map(|path| match files::regular(&path).and_then(|()| fs::metadata(&path)) {
        Ok(meta) => {
            let node = node(&meta).filter(|_| nodes_last(&path, &meta, &mut disks));
            let (changed, identity) = (changed_nanos(&meta), node.map_or(0, |_| identity(&meta)));
            Ok(LocalFile { path, bytes: meta.len(), changed, node, identity, kept: Arc::default() })
        }
        Err(source) => Err(DataError::Open { path, source }),
    });
    let files = looked_at.collect::<Result<Vec<_>, DataError>>()?;
    let object = |LocalFile { path, bytes, changed, .. }: &LocalFile| Object {
        name: path.to_string_lossy().into(),
        bytes: *bytes,
        tag: *changed,
    };
    Ok((files.iter().map(object).collect(), files))
}

/// The time of the last change (`mtime`), which programs can set.
fn changed_nanos(meta: &Metadata) -> u64 {
    let time = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    time.map_or(0, |time| time.as_nanos() as u64)
}

fn node(_meta: &Metadata) -> Option<u64> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::MetadataExt::ino(_meta));
    #[cfg(not(unix))]
    None
}

/// Whether a file keeps its inode number: on ext, XFS, Btrfs, tmpfs, ZFS, F2FS, NFS, Lustre and overlayfs. User-space file systems, Windows
/// shares and FAT may renumber files. `disks` caches the answer for each disk.
#[cfg(target_os = "linux")]
fn nodes_last(path: &Path, meta: &Metadata, disks: &mut HashMap<u64, bool>) -> bool {
    const LAST: [u32; 9] =
        [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x2FC1_2FC1, 0xF2F5_2010, 0x6969, 0x0BD0_0BD0, 0x794C_7630];
    let lasts = || rustix::fs::statfs(path).is_ok_and(|system| LAST.contains(&(system.f_type as u32)));
    *disks.entry(std::os::unix::fs::MetadataExt::dev(meta)).or_insert_with(lasts)
}

#[cfg(not(target_os = "linux"))]
fn nodes_last(_: &Path, _: &Metadata, _: &mut HashMap<u64, bool>) -> bool {
    true
}

/// Two changes within this time may have the same timestamp, because some file systems store whole seconds.
pub(super) const SAME: Duration = Duration::from_secs(2);

/// The time of the last change (`ctime`), which programs cannot set, if there is one.
#[cfg(unix)]
pub(super) fn changed(meta: &Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    UNIX_EPOCH.checked_add(Duration::new(meta.ctime().try_into().ok()?, meta.ctime_nsec().try_into().ok()?))
}

#[cfg(not(unix))]
pub(super) fn changed(_: &Metadata) -> Option<SystemTime> {
    None
}

/// [`Store::identity`] of a file that keeps its inode number.
#[cfg(target_os = "linux")]
fn identity(meta: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    if !changed(meta).is_some_and(|time| time.elapsed().is_ok_and(|age| age > SAME)) {
        return 0;
    }
    let mut hasher = FnvHasher::default();
    [meta.ino(), meta.ctime() as u64, meta.ctime_nsec() as u64].into_iter().for_each(|word| hasher.write_u64(word));
    hasher.finish()
}

#[cfg(not(target_os = "linux"))]
fn identity(_: &Metadata) -> u64 {
    0
}

impl LocalFile {
    fn open(&self) -> io::Result<Arc<File>> {
        self.kept.opened(|| {
            let file = files::open(&self.path)?;
            let meta = file.metadata()?;
            let is_same = (meta.len(), changed_nanos(&meta)) == (self.bytes, self.changed);
            let is_node = self.node.is_none_or(|number| node(&meta) == Some(number));
            if is_same && is_node { Ok(file) } else { Err(io::Error::other(ObjectChange)) }
        })
    }
}

/// Reads a part of a file.
struct FilePart {
    file: Arc<File>,
    rest: Range<u64>,
}

impl Read for FilePart {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.rest.end - self.rest.start).unwrap_or(usize::MAX);
        let bytes = left.min(into.len());
        read_at(&self.file, self.rest.start, &mut into[..bytes])?;
        self.rest.start += bytes as u64;
        Ok(bytes)
    }
}

impl Store for Vec<LocalFile> {
    fn open(&self, object: usize, part: Range<u64>) -> io::Result<Box<dyn Read + Send + '_>> {
        Ok(Box::new(FilePart { file: self[object].open()?, rest: part }))
    }

    fn read(&self, object: usize, start: u64, into: &mut [u8]) -> io::Result<()> {
        read_at(&*self[object].open()?, start, into)
    }

    fn identity(&self, object: usize) -> u64 {
        self[object].identity
    }

    fn beside(&self, object: usize, extension: &str) -> io::Result<Option<Vec<u8>>> {
        let file = &self[object].path;
        let path = file.with_extension(extension);
        let changed = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
        if path == *file || changed(&path).is_none_or(|time| Some(time) < changed(file)) {
            return Ok(None);
        }
        Ok(files::read(&path).ok())
    }
}

/// Fills `into` with a file's bytes from `start` on, on the calling thread.
#[cfg(unix)]
pub(crate) fn read_at(file: &File, start: u64, into: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, into, start)
}

#[cfg(windows)]
pub(crate) fn read_at(file: &File, mut start: u64, mut into: &mut [u8]) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !into.is_empty() {
        match file.seek_read(into, start)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => (start, into) = (start + read as u64, &mut into[read..]),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{DataError, store::Objects};
    use std::{
        fs,
        io::ErrorKind,
        time::{Duration, SystemTime},
    };

    #[test]
    fn many_files_are_read_in_any_order() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = (0..600).map(|n| folder.path().join(format!("{n}"))).collect();
        paths.iter().enumerate().for_each(|(n, path)| fs::write(path, (n as u32).to_le_bytes()).unwrap());
        let objects = Objects::local(paths).unwrap();
        for n in (0..600).rev().chain((0..600).step_by(7)) {
            assert_eq!(objects.read(n, 0..4).unwrap(), (n as u32).to_le_bytes());
        }
    }

    #[test]
    fn a_file_that_was_cut_off_is_an_error_with_its_name_and_range() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shard");
        fs::write(&path, [7; 100]).unwrap();
        let objects = Objects::local(vec![path.clone()]).unwrap();
        assert_eq!(objects.read(0, 90..100).unwrap(), [7; 10]);
        fs::write(&path, [7; 50]).unwrap();
        let error = objects.read(0, 40..60).unwrap_err();
        assert!(
            matches!(&error, DataError::Read { source, .. } if source.kind() == ErrorKind::UnexpectedEof),
            "{error}"
        );
        assert!(error.to_string().contains("bytes 40 to 60 of") && error.to_string().contains("shard"), "{error}");
        // Beyond the size at `open` nothing is even allocated.
        assert!(objects.read(0, 0..u64::MAX).is_err());
    }

    #[test]
    fn a_file_that_was_replaced_before_it_is_opened_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shard");
        fs::write(&path, [7; 100]).unwrap();
        let objects = Objects::local(vec![path.clone()]).unwrap();
        fs::write(folder.path().join("new"), [8; 100]).unwrap();
        let new = fs::File::options().write(true).open(folder.path().join("new")).unwrap();
        new.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        let error = objects.read(0, 0..10).unwrap_err();
        assert!(matches!(&error, DataError::Changed { object } if object.ends_with("shard")), "{error}");
        // While a file is open, its handle reads the old bytes.
        let objects = Objects::local(vec![path.clone()]).unwrap();
        assert_eq!(objects.read(0, 0..10).unwrap(), [8; 10]);
        fs::rename(&path, folder.path().join("old")).unwrap();
        fs::write(&path, [9; 100]).unwrap();
        assert_eq!(objects.read(0, 0..10).unwrap(), [8; 10]);
    }
    /// As some tools unpack archives.
    #[cfg(unix)]
    #[test]
    fn a_file_of_the_same_size_and_time_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shard");
        fs::write(&path, [7; 100]).unwrap();
        let objects = Objects::local(vec![path.clone()]).unwrap();
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(folder.path().join("new"), [8; 100]).unwrap();
        fs::File::options().write(true).open(folder.path().join("new")).unwrap().set_modified(time).unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        for error in [objects.read(0, 0..10).unwrap_err(), objects.whole(0).map(drop).unwrap_err()] {
            assert!(matches!(&error, DataError::Changed { object } if object.ends_with("shard")), "{error}");
        }
    }
}
