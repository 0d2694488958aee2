//! A data set in a cache: a folder of its own, with a file for each page or each decompressed shard.

use super::{lock, ours, sums::Sums, tally::Tally};
use crate::{replace::TEMPORARY, store::Object};
use crc32fast::{Hasher as Crc, hash};
use fnv::FnvHasher;
use std::{
    fs::{self, DirEntry, File},
    hash::Hasher,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

/// The file that says that a folder is a set, and how many bytes it has reserved. It begins with its kind and version.
const HEAD: &str = "set";
const MAGIC: &[u8; 8] = b"burnpse2";
/// The head of version 1.
const OLD: &[u8; 8] = b"burnpse1";
/// Whoever has the set open holds a shared lock on this file.
const IN_USE: &str = "in-use";
/// How the names of the folders of pages begin.
pub(super) const PAGES: &str = "pages-";
/// How the names of decompressed shards end.
pub(crate) const SHARD: &str = ".mds";

/// Names a data set: by the names, sizes and tags of its objects, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id {
    hash: u64,
    check: u32,
}

impl Id {
    /// Names a list of objects. Another size or tag makes another name. `kind` says what is kept of them.
    pub(crate) fn of(kind: &str, objects: &[Object]) -> Self {
        let (mut hash, mut check) = (FnvHasher::default(), Crc::new());
        let mut add = |bytes: &[u8]| {
            hash.write(bytes);
            check.update(bytes);
        };
        add(kind.as_bytes());
        for Object { name, bytes, tag } in objects {
            [name.len() as u64, *bytes, *tag].iter().for_each(|word| add(&word.to_le_bytes()));
            add(name.as_bytes());
        }
        Self { hash: hash.finish(), check: check.finalize() }
    }

    fn folder(self) -> String {
        format!("set-{:016x}{:08x}", self.hash, self.check)
    }
}

/// The head that a set's folder of this name must have.
fn magic(name: &str) -> Option<&'static [u8; 8]> {
    let hash = name.strip_prefix("set-").filter(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    [(24, MAGIC), (16, OLD)].into_iter().find(|(length, _)| *length == hash.len()).map(|(_, magic)| magic)
}

/// Another version or another program has made it.
pub(super) fn strange(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} was not made by this version", path.display()))
}

/// A set that is open. Until it is dropped, no process evicts it.
#[derive(Debug)]
pub(crate) struct Set {
    folder: PathBuf,
    /// Locked.
    _in_use: File,
}

impl Set {
    /// Opens a set, and makes it if need be. Also tells whether nobody else has it open: then what was left half written is
    /// removed. Only who holds the folder's lock may open sets.
    pub(super) fn open(cache: &Path, id: Id) -> io::Result<(Self, bool)> {
        let folder = cache.join(id.folder());
        ours::inner(&folder)?;
        let path = folder.join(IN_USE);
        let in_use = ours::open(&path)?;
        let is_alone = lock::taken(lock::COPIES, || in_use.try_lock())?;
        let set = Self { folder, _in_use: in_use };
        let entries = entries(&set.folder)?;
        match head(&set.folder)? {
            None if entries.len() <= 2 => set.reserve(0)?,
            Some(head) if head.starts_with(MAGIC) => {}
            _ => return Err(strange(&set.folder.join(HEAD))),
        }
        for entry in entries.iter().filter(|entry| entry.file_name().to_string_lossy().starts_with(PAGES)) {
            ours::inner(&entry.path())?;
            if is_alone {
                remove_half_written(&entry.path())?;
            }
        }
        set._in_use.set_modified(SystemTime::now())?;
        if is_alone {
            set._in_use.unlock()?;
        }
        // Who locks it otherwise holds the folder's lock. Only a copy of such a process may have it still.
        lock::wait(&path, || set._in_use.try_lock_shared())?;
        Ok((set, is_alone))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Says how many bytes the set has, whatever it has now. 0 leaves it to the count.
    pub(super) fn reserve(&self, bytes: u64) -> io::Result<()> {
        let bytes = bytes.to_le_bytes();
        // In place: it is as long as before.
        ours::open(&self.folder.join(HEAD))?.write_all(&[&MAGIC[..], &bytes, &hash(&bytes).to_le_bytes()].concat())
    }

    /// Removes all that it has.
    pub(super) fn clear(&self) -> io::Result<()> {
        clear(&self.folder)
    }

    /// Waits until nobody else writes shards into the set, and removes what was left half written. Until the checksums are
    /// dropped, others wait.
    ///
    /// # Errors
    /// If another process has it, and the files do not grow for so long.
    pub(crate) fn sums(&self, patience: Duration) -> io::Result<Sums> {
        let file = Sums::file(&self.folder)?;
        let (mut since, mut written) = (Instant::now(), 0);
        while !lock::taken(lock::COPIES, || file.try_lock())? {
            let now = entries(&self.folder)?.iter().filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();
            if now != written {
                (since, written) = (Instant::now(), now);
            } else if since.elapsed() > patience {
                let folder = self.folder.display();
                let problem = format!("another process decompresses shards into {folder}, and does not go on; end it");
                return Err(io::Error::new(io::ErrorKind::TimedOut, problem));
            }
        }
        remove_half_written(&self.folder)?;
        Ok(Sums::new(file))
    }
}

/// A set as one sees it from outside.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) folder: PathBuf,
    /// The bytes that it has reserved, or on disk.
    pub(super) bytes: u64,
    /// When it was opened last.
    pub(super) opened: SystemTime,
    /// Whether it is of an earlier version.
    pub(super) is_old: bool,
}

impl Seen {
    /// All sets of a cache. What a later version or a stranger has made is none.
    pub(super) fn all(cache: &Path, tally: &mut Tally) -> io::Result<Vec<Self>> {
        let mut seen = |entry: DirEntry| {
            let (folder, magic) = (entry.path(), magic(&entry.file_name().to_string_lossy())?);
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let head =
                if is_folder { head(&folder).ok()?.filter(|head| head.starts_with(magic))? } else { return None };
            let is_old = magic == OLD;
            let bytes = match reserved(&head) {
                _ if is_old => 0, // it has a sparse file, and is removed when another set is opened
                0 => tally.bytes(&folder),
                reserved => reserved,
            };
            let opened = fs::metadata(folder.join(IN_USE)).and_then(|meta| meta.modified());
            Some(Self { folder, bytes, opened: opened.unwrap_or(SystemTime::UNIX_EPOCH), is_old })
        };
        Ok(entries(cache)?.into_iter().filter_map(&mut seen).collect())
    }

    /// Removes the set, unless somebody has it open for all this time. Only who holds the folder's lock may do so.
    pub(super) fn evict(&self, time: Duration) -> io::Result<bool> {
        let in_use = ours::open(&self.folder.join(IN_USE))?;
        let is_free = lock::taken(time, || in_use.try_lock())?;
        if is_free {
            clear(&self.folder)?;
            // The head goes late: if this process is killed before, the rest is still a set.
            fs::remove_dir_all(&self.folder)?;
        }
        Ok(is_free)
    }
}

/// The file [`HEAD`]. `None` if there is none yet.
fn head(folder: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    match ours::existing(&folder.join(HEAD)) {
        Ok(file) => file.take(64).read_to_end(&mut head)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(head).filter(|head| !head.is_empty()))
}

/// The bytes that a set has reserved. 0 if that is damaged.
fn reserved(head: &[u8]) -> u64 {
    let bytes = head.get(8..).and_then(|rest| rest.split_first_chunk());
    bytes.filter(|(bytes, sum)| hash(*bytes).to_le_bytes() == **sum).map_or(0, |(bytes, _)| u64::from_le_bytes(*bytes))
}

fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    fs::read_dir(folder)?.collect()
}

fn remove_half_written(folder: &Path) -> io::Result<()> {
    let is_half = |entry: &DirEntry| entry.path().extension().is_some_and(|end| end == TEMPORARY);
    entries(folder)?.iter().filter(|entry| is_half(entry)).try_for_each(|entry| fs::remove_file(entry.path()))
}

/// Removes what a set has. No link is followed.
fn clear(set: &Path) -> io::Result<()> {
    let is_data = |entry: &DirEntry| [HEAD, IN_USE].iter().all(|name| entry.file_name() != *name);
    entries(set)?.iter().filter(|entry| is_data(entry)).try_for_each(|entry| match entry.file_type()?.is_dir() {
        true => fs::remove_dir_all(entry.path()),
        false => fs::remove_file(entry.path()),
    })
}
