//! A data set in a cache: a folder of its own, which says how many bytes it has reserved.

use super::{disk::held, ours, sums::SUMS};
use crate::{replace::TEMPORARY, store::Object};
use crc32fast::Hasher as Crc;
use fnv::FnvHasher;
use std::{
    fs::{self, File, TryLockError},
    hash::Hasher,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

/// What is in a set, and in which version: the last byte. It begins the file [`HEAD`], which says what the folder is.
const MAGIC: &[u8; 8] = b"burnpse1";
const HEAD: &str = "set";
/// Of a head nothing behind is read.
const LONGEST: u64 = 64;
/// Whoever has the set open holds a shared lock on this file.
const IN_USE: &str = "in-use";
/// A file that a copy of a process may have locked is looked at so often, with a pause between.
pub(super) const COPIES: u32 = 20;
const COPY: Duration = Duration::from_millis(5);
/// A copy that is still there after so many looks has been stopped.
const STOPPED: u32 = 1000;
/// The file of the pages. It is sparse.
pub(super) const DATA: &str = "data";
/// The file that says which pages are there.
pub(super) const TABLE: &str = "table";
/// How the names of the files begin that readers hold a lock on.
pub(super) const READER: &str = "reader-";
/// Whoever writes shards into the set holds a lock on this file.
const WRITER: &str = "writer";
/// How the names of decompressed shards end.
pub(crate) const SHARD: &str = ".mds";

/// Names a data set: by what is in it, in order.
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
        format!("set-{:016x}", self.hash)
    }
}

/// Whether a name is one that a set's folder may have.
fn is_ours(name: &str) -> bool {
    name.strip_prefix("set-").is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// What the file [`HEAD`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    id: Id,
    /// The bytes that the set may have on disk.
    reserved: u64,
}

impl Head {
    /// `None` if there is none yet.
    fn read(folder: &Path) -> io::Result<Option<Self>> {
        let mut file = Vec::new();
        match ours::existing(&folder.join(HEAD)) {
            Ok(from) => from.take(LONGEST).read_to_end(&mut file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if file.is_empty() {
            return Ok(None);
        }
        let word = |at: usize| file.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let head = || {
            let id = Id { hash: word(8)?, check: word(16)? as u32 };
            file.starts_with(MAGIC).then_some(Self { id, reserved: word(24)? })
        };
        head().map(Some).ok_or_else(|| strange(&folder.join(HEAD)))
    }

    /// Written in place: it is as long as before.
    fn write(self, folder: &Path) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        [self.id.hash, self.id.check.into(), self.reserved].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        ours::open(&folder.join(HEAD))?.write_all(&bytes)
    }
}

/// Another version or another program has made it.
pub(super) fn strange(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} was not made by this version", path.display()))
}

/// A set that is open. Until it is dropped, no process evicts it.
#[derive(Debug)]
pub(crate) struct Set {
    folder: PathBuf,
    id: Id,
    /// Locked.
    _in_use: File,
}

impl Set {
    /// Opens a set, and makes it if need be. Also tells whether nobody else has it open. Only who holds the account's lock
    /// may open sets.
    pub(super) fn open(cache: &Path, id: Id) -> io::Result<(Self, bool)> {
        let folder = cache.join(id.folder());
        ours::inner(&folder)?;
        let in_use = ours::open(&folder.join(IN_USE))?;
        let is_alone = take_soon(&in_use)?;
        match Head::read(&folder)? {
            Some(head) if head.id == id => {}
            Some(_) if is_alone => {
                clear(&folder)?; // damaged
                Head { id, reserved: 0 }.write(&folder)?;
            }
            None if fs::read_dir(&folder)?.count() <= 2 => Head { id, reserved: 0 }.write(&folder)?,
            _ => return Err(strange(&folder)),
        }
        in_use.set_modified(SystemTime::now())?;
        if is_alone {
            in_use.unlock()?;
        }
        // Who locks it otherwise holds the account's lock. Only a copy of such a process may have it still.
        if !soon(STOPPED, || is_taken(in_use.try_lock_shared()))? {
            let problem = format!("another process holds {}, and does not go on", folder.join(IN_USE).display());
            return Err(io::Error::new(io::ErrorKind::TimedOut, problem));
        }
        Ok((Self { folder, id, _in_use: in_use }, is_alone))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn reserved(&self) -> io::Result<u64> {
        Ok(Head::read(&self.folder)?.map_or(0, |head| head.reserved))
    }

    /// Only who holds the account's lock may do so.
    pub(super) fn set_reserved(&self, reserved: u64) -> io::Result<()> {
        Head { id: self.id, reserved }.write(&self.folder)
    }

    /// Waits until nobody else writes shards into the set, and removes what was left half written. It ends with the file.
    ///
    /// # Errors
    /// If another process has it, and the files do not grow for so long.
    pub(crate) fn writer(&self, patience: Duration) -> io::Result<File> {
        let file = ours::open(&self.folder.join(WRITER))?;
        let (mut since, mut written) = (Instant::now(), 0);
        while !take_soon(&file)? {
            let now = self.written()?;
            if now != written {
                (since, written) = (Instant::now(), now);
            } else if since.elapsed() > patience {
                let folder = self.folder.display();
                let problem = format!("another process decompresses shards into {folder}, and does not go on; end it");
                return Err(io::Error::new(io::ErrorKind::TimedOut, problem));
            }
        }
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == TEMPORARY) {
                fs::remove_file(path)?;
            }
        }
        Ok(file)
    }

    /// The length of all files. Some may go meanwhile.
    fn written(&self) -> io::Result<u64> {
        let length =
            |entry: io::Result<fs::DirEntry>| entry.and_then(|entry| entry.metadata()).map_or(0, |meta| meta.len());
        Ok(fs::read_dir(&self.folder)?.map(length).sum())
    }

    /// Removes all pages.
    #[cfg(all(feature = "remote", unix))]
    pub(super) fn clear(&self) -> io::Result<()> {
        clear(&self.folder)
    }
}

/// A set as one sees it from outside.
#[derive(Debug)]
pub(super) struct Seen {
    folder: PathBuf,
    /// What it has reserved, or on disk if that is more.
    pub(super) bytes: u64,
    /// When it was opened last.
    pub(super) opened: SystemTime,
}

impl Seen {
    /// All sets of a cache. What another version or a stranger has made is none.
    pub(super) fn all(cache: &Path) -> io::Result<Vec<Self>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(cache)? {
            let entry = entry?;
            let folder = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder || !is_ours(&entry.file_name().to_string_lossy()) {
                continue;
            }
            if let Ok(Some(head)) = Head::read(&folder) {
                let opened = fs::metadata(folder.join(IN_USE)).and_then(|meta| meta.modified());
                let bytes = head.reserved.max(held(&folder.join(DATA))); // after a power failure the file may have more
                all.push(Self { folder, bytes, opened: opened.unwrap_or(SystemTime::UNIX_EPOCH) });
            }
        }
        Ok(all)
    }

    /// Removes the set, unless somebody has it open as often as one looks. Only who holds the account's lock may do so.
    pub(super) fn evict(&self, looks: u32) -> io::Result<bool> {
        let in_use = ours::open(&self.folder.join(IN_USE))?;
        if !soon(looks, || take(&in_use))? {
            return Ok(false);
        }
        clear(&self.folder)?;
        // The head goes late: if this process is killed here, the rest is still a set.
        [HEAD, IN_USE].iter().try_for_each(|name| fs::remove_file(self.folder.join(name)))?;
        let _ = fs::remove_dir(&self.folder); // a stranger may have put something there
        Ok(true)
    }
}

/// Locks a file for this handle alone, if nobody else has locked it.
pub(super) fn take(file: &File) -> io::Result<bool> {
    is_taken(file.try_lock())
}

fn is_taken(locked: Result<(), TryLockError>) -> io::Result<bool> {
    match locked {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The same, with some patience.
fn take_soon(file: &File) -> io::Result<bool> {
    soon(COPIES, || take(file))
}

/// Tries to lock a file for a while. A process that starts another one has made a copy of itself, which has its locks until
/// that program runs.
fn soon(looks: u32, take: impl Fn() -> io::Result<bool>) -> io::Result<bool> {
    for _ in 0..looks {
        if take()? {
            return Ok(true);
        }
        thread::sleep(COPY);
    }
    take()
}

/// Removes the files of a set that hold data, and no others.
fn clear(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        let is_ours = [DATA, TABLE, WRITER, SUMS].contains(&&*text) || text.starts_with(READER);
        if is_ours || text.ends_with(SHARD) || text.ends_with(&format!(".{TEMPORARY}")) {
            fs::remove_file(folder.join(&name))?;
        }
    }
    Ok(())
}
