//! The folder of a cache: its sets, how many bytes they may have together, and which of them must go.
//!
//! Processes share it by locks on files:
//!
//! - *Folder*: exclusive, on the file that marks the folder. It is held while a set is opened and others are evicted. While a
//!   thread holds it, the thread waits for no network, and for other locks only as long as copies of processes have them.
//! - *In use*: shared, one for each set, until the data set is dropped. It is taken while the folder is held. Nobody waits
//!   for it.
//! - *Shards*: exclusive, one for each set (`shards.rs`). The writer of shards holds no other lock but *in use*.

use super::{
    disk::{BLOCK, Tally, free},
    lock, ours,
};
use crate::{error::DataError, replace::TEMPORARY, store::Object};
use crc32fast::hash;
use fnv::FnvHasher;
use parking_lot::Mutex;
use std::{
    fs::{self, DirEntry, File},
    hash::Hasher,
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// The file that marks the folder as a cache, and how it begins, also in version 1.
const MARK: &str = "burn-pinned-cache";
const MARKED: [&[u8]; 2] = [b"burnpca2", b"burnpca1"];
/// The file that marks a folder in it as a set, and how it begins. Then come the bytes that it has reserved, and their checksum.
const HEAD: &str = "set";
const MAGIC: &[u8] = b"burnpse2";
/// The same of version 1.
const OLD: &[u8] = b"burnpse1";
/// Whoever has the set open holds a shared lock on this file.
const IN_USE: &str = "in-use";
/// How the names of the folders of pages begin.
pub(super) const PAGES: &str = "pages-";

/// A folder with a limit. Several processes may share it.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    limit: u64,
    tally: Mutex<Tally>,
}

impl Folder {
    /// Opens a folder, and makes it if need be.
    ///
    /// # Errors
    /// If it may be somebody else's ([`is_foreign`](super::is_foreign)), if it cannot be written, if another version has made
    /// it, or if the disk has less room than the limit.
    pub(crate) fn open(path: &Path, limit: u64) -> io::Result<Self> {
        ours::top(path)?;
        let folder = Self { path: path.into(), limit, tally: Mutex::default() };
        folder.lock()?.unlock()?;
        let held = folder.held()?;
        match free(path)?.map(|free| free.saturating_add(held)) {
            Some(room) if limit > room => Err(io::Error::other(TooLittle { path: path.into(), limit, room })),
            _ => Ok(folder),
        }
    }

    #[cfg(feature = "remote")]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a set that is to have this number of bytes. If there is too little room for it, sets that nobody has open are
    /// evicted, those first that were opened longest ago. Also tells how many bytes of room are lacking then.
    ///
    /// `is_reserved` keeps the room for the set, if it is enough.
    pub(crate) fn set(&self, id: Id, bytes: u64, is_reserved: bool) -> io::Result<(Set, u64)> {
        let lock = self.lock()?;
        let (set, is_alone) = Set::open(self.path.join(id.0))?;
        let (own, mut others): (Vec<_>, Vec<_>) = self.sets()?.into_iter().partition(|seen| seen.folder == set.folder);
        let [own, mut all] = [&own, &others].map(|sets| sets.iter().map(|set| set.bytes).fold(0, u64::saturating_add));
        if own > self.limit && is_alone {
            clear(&set.folder)?;
        }
        others.sort_by_key(|set| set.opened);
        let (wanted, mut time) = (bytes.max(own).min(self.limit), lock::COPIES);
        for seen in others {
            if seen.bytes == 0 || all > self.limit - wanted {
                match evict(&seen.folder, time)? {
                    true => all = all.saturating_sub(seen.bytes),
                    false => time = Duration::ZERO, // copies of processes have ended meanwhile
                }
            }
        }
        let lacking = all.saturating_add(bytes).saturating_sub(self.limit);
        reserve(&set.folder, if is_reserved && lacking == 0 { bytes } else { 0 })?;
        lock.unlock()?;
        Ok((set, lacking))
    }

    /// The bytes that all sets have on disk or have reserved, and those of the mark.
    pub(super) fn held(&self) -> io::Result<u64> {
        Ok(self.sets()?.iter().fold(BLOCK, |held, set| held.saturating_add(set.bytes)))
    }

    /// All sets. What a later version or a stranger has made is none.
    fn sets(&self) -> io::Result<Vec<Seen>> {
        let mut tally = self.tally.lock();
        let seen = |entry: DirEntry| {
            let (folder, magic) = (entry.path(), magic(&entry.file_name().to_string_lossy())?);
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let head =
                if is_folder { head(&folder).ok().filter(|head| head.starts_with(magic))? } else { return None };
            let opened = fs::symlink_metadata(folder.join(IN_USE)).and_then(|meta| meta.modified());
            let opened = opened.unwrap_or(SystemTime::UNIX_EPOCH);
            let bytes = match reserved(&head) {
                _ if magic == OLD => 0, // it has a sparse file, and is removed when another set is opened
                0 => tally.bytes(&folder),
                reserved => reserved,
            };
            Some(Seen { folder, bytes, opened })
        };
        Ok(entries(&self.path)?.into_iter().filter_map(seen).collect())
    }

    /// Locks the folder until the file is unlocked or closed.
    fn lock(&self) -> io::Result<File> {
        let path = self.path.join(MARK);
        let mut mark = ours::open(&path)?;
        lock::wait(&path, || mark.try_lock())?;
        let found = start(&mut mark)?;
        if found.is_empty() || found.starts_with(MARKED[1]) {
            mark.set_len(0)?;
            mark.rewind()?;
            mark.write_all(MARKED[0])?;
        } else if !found.starts_with(MARKED[0]) {
            return Err(strange(&path));
        }
        Ok(mark)
    }
}

/// Names a data set: the name of its folder.
#[derive(Debug)]
pub(crate) struct Id(String);

impl Id {
    /// Names a list of objects, in order. Another name, size or tag makes another one. `kind` says what is kept of them.
    pub(crate) fn of(kind: &str, objects: &[Object]) -> Self {
        let (mut all, mut fnv) = (kind.as_bytes().to_vec(), FnvHasher::default());
        for Object { name, bytes, tag } in objects {
            all.extend([name.len() as u64, *bytes, *tag].map(u64::to_le_bytes).as_flattened());
            all.extend(name.as_bytes());
        }
        fnv.write(&all);
        Self(format!("set-{:016x}{:08x}", fnv.finish(), hash(&all)))
    }
}

/// How the head of a set begins that has a folder of this name.
fn magic(name: &str) -> Option<&'static [u8]> {
    let hash = name.strip_prefix("set-").filter(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    [(24, MAGIC), (16, OLD)].into_iter().find(|(length, _)| *length == hash.len()).map(|(_, magic)| magic)
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
    fn open(folder: PathBuf) -> io::Result<(Self, bool)> {
        ours::inner(&folder)?;
        let path = folder.join(IN_USE);
        let in_use = ours::open(&path)?;
        let is_alone = lock::taken(lock::COPIES, || in_use.try_lock())?;
        let (found, entries) = (head(&folder)?, entries(&folder)?);
        if found.is_empty() && entries.len() <= 2 {
            reserve(&folder, 0)?;
        } else if !found.starts_with(MAGIC) {
            return Err(strange(&folder.join(HEAD)));
        }
        for entry in entries.iter().filter(|entry| entry.file_name().to_string_lossy().starts_with(PAGES)) {
            ours::inner(&entry.path())?;
            if is_alone {
                remove_half_written(&entry.path())?;
            }
        }
        in_use.set_modified(SystemTime::now())?;
        if is_alone {
            in_use.unlock()?;
        }
        // Who locks it otherwise holds the folder's lock. Only a copy of such a process may have it still.
        lock::wait(&path, || in_use.try_lock_shared())?;
        Ok((Self { folder, _in_use: in_use }, is_alone))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// A set as one sees it from outside.
#[derive(Debug)]
struct Seen {
    folder: PathBuf,
    /// The bytes that it has reserved, or on disk. 0 if it is of an earlier version.
    bytes: u64,
    /// When it was opened last.
    opened: SystemTime,
}

/// Removes a set, unless somebody has it open for all this time. Only who holds the folder's lock may do so.
fn evict(set: &Path, time: Duration) -> io::Result<bool> {
    let in_use = ours::open(&set.join(IN_USE))?;
    let is_free = lock::taken(time, || in_use.try_lock())?;
    if is_free {
        clear(set)?;
        // The head goes late: if this process is killed before, the rest is still a set.
        fs::remove_dir_all(set)?;
    }
    Ok(is_free)
}

/// Removes what a set has. No link is followed.
fn clear(set: &Path) -> io::Result<()> {
    let is_data = |entry: &DirEntry| [HEAD, IN_USE].iter().all(|name| entry.file_name() != *name);
    entries(set)?.iter().filter(|entry| is_data(entry)).try_for_each(|entry| match entry.file_type()?.is_dir() {
        true => fs::remove_dir_all(entry.path()),
        false => fs::remove_file(entry.path()),
    })
}

pub(super) fn remove_half_written(folder: &Path) -> io::Result<()> {
    let is_half = |entry: &DirEntry| entry.path().extension().is_some_and(|end| end == TEMPORARY);
    entries(folder)?.iter().filter(|entry| is_half(entry)).try_for_each(|entry| fs::remove_file(entry.path()))
}

pub(super) fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    fs::read_dir(folder)?.collect()
}

/// How the head of a set begins. Nothing if there is none yet.
fn head(set: &Path) -> io::Result<Vec<u8>> {
    match ours::to_read(&set.join(HEAD)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        file => start(&mut file?),
    }
}

/// Says how many bytes a set has, whatever it has now. 0 leaves it to the count.
fn reserve(set: &Path, bytes: u64) -> io::Result<()> {
    let bytes = bytes.to_le_bytes();
    // In place: it is as long as before.
    ours::open(&set.join(HEAD))?.write_all(&[MAGIC, &bytes, &hash(&bytes).to_le_bytes()].concat())
}

/// The bytes that a set has reserved. 0 if that is damaged.
fn reserved(head: &[u8]) -> u64 {
    let bytes = head.get(8..).and_then(|rest| rest.split_first_chunk());
    bytes.filter(|(bytes, sum)| hash(*bytes).to_le_bytes() == **sum).map_or(0, |(bytes, _)| u64::from_le_bytes(*bytes))
}

fn start(file: &mut File) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    file.take(20).read_to_end(&mut start).map(|_| start)
}

/// Another version or another program has made it.
fn strange(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} was not made by this version", path.display()))
}

/// A disk has less room than a cache may take. The inner error of an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("the limit is {limit} bytes, and {} has room for {room}", path.display())]
struct TooLittle {
    path: PathBuf,
    limit: u64,
    room: u64,
}

/// What is wrong with a folder that cannot be a cache.
pub(crate) fn unusable(path: &Path, error: &io::Error) -> DataError {
    let (problem, advice) = match error.get_ref().and_then(|inner| inner.downcast_ref::<TooLittle>()) {
        Some(TooLittle { room, .. }) => {
            (error.to_string(), format!("write `.cache({path:?}, {room})` or less, or name a folder on a larger disk"))
        }
        None => {
            let problem = format!("{} cannot be used: {error}", path.display());
            (problem, "name an empty folder, or a new one, that can be written to".into())
        }
    };
    DataError::Option { option: "cache", problem, advice }
}
