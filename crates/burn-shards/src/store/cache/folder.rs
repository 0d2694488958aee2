//! The folder of a cache: how many bytes its sets may have together, and which of them must go.
//!
//! Processes share the folder by locks on files:
//!
//! - *Folder*: exclusive, on the file that marks the folder. It is held while a set is opened and others are evicted. While a
//!   thread holds it, the thread waits for no network, and for other locks only as long as copies of processes have them.
//! - *In use*: shared, one for each set, until the data set is dropped. It is taken while the folder is held. Nobody waits
//!   for it.
//! - *Sums*: exclusive, one for each set, while shards are written into the set. The writer holds no other lock but *in
//!   use*. Others wait for it as long as files grow.

use super::{
    disk::{BLOCK, free},
    lock, ours,
    set::{Id, Seen, Set, strange},
    tally::Tally,
};
use crate::error::DataError;
use parking_lot::Mutex;
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

/// The file that marks the folder as a cache, and its versions: the last byte.
const MARK: &str = "burn-pinned-cache";
const MAGIC: &[u8; 8] = b"burnpca2";
const OLD: &[u8; 8] = b"burnpca1";

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

    /// Opens a set that is to have this number of bytes. If there is too little room for it, sets that nobody has open are
    /// evicted, those first that were opened longest ago. Also tells how many bytes of room are lacking then.
    ///
    /// `is_reserved` keeps the room for the set, if it is enough.
    pub(crate) fn set(&self, id: Id, bytes: u64, is_reserved: bool) -> io::Result<(Set, u64)> {
        let lock = self.lock()?;
        let (set, is_alone) = Set::open(&self.path, id)?;
        let (mut own, mut others) = (0, 0u64);
        let mut sets = Seen::all(&self.path, &mut self.tally.lock())?;
        for seen in &sets {
            if seen.folder == set.folder() { own = seen.bytes } else { others = others.saturating_add(seen.bytes) }
        }
        if own > self.limit && is_alone {
            set.clear()?;
        }
        sets.sort_by_key(|set| set.opened);
        let (wanted, mut time) = (bytes.max(own).min(self.limit), lock::COPIES);
        for seen in sets.iter().filter(|seen| seen.folder != set.folder()) {
            if seen.is_old || others > self.limit - wanted {
                match seen.evict(time)? {
                    true => others = others.saturating_sub(seen.bytes),
                    false => time = Duration::ZERO, // copies of processes have ended meanwhile
                }
            }
        }
        let lacking = others.saturating_add(bytes).saturating_sub(self.limit);
        set.reserve(if is_reserved && lacking == 0 { bytes } else { 0 })?;
        lock.unlock()?;
        Ok((set, lacking))
    }

    /// The bytes that all sets have on disk or have reserved, and those of the mark.
    pub(super) fn held(&self) -> io::Result<u64> {
        let sets = Seen::all(&self.path, &mut self.tally.lock())?;
        Ok(sets.iter().fold(BLOCK, |held, set| held.saturating_add(set.bytes)))
    }

    /// Locks the folder until the file is unlocked or closed.
    fn lock(&self) -> io::Result<File> {
        let path = self.path.join(MARK);
        let mut mark = ours::open(&path)?;
        lock::wait(&path, || mark.try_lock())?;
        let mut magic = Vec::new();
        (&mut mark).take(8).read_to_end(&mut magic)?;
        if magic == OLD || magic.is_empty() {
            mark.set_len(0)?;
            mark.seek(SeekFrom::Start(0))?;
            mark.write_all(MAGIC)?;
        } else if magic != MAGIC {
            return Err(strange(&path));
        }
        Ok(mark)
    }
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
    let too_little = error.get_ref().and_then(|inner| inner.downcast_ref::<TooLittle>());
    let (problem, advice) = match too_little {
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
