//! The folder of a cache: how many bytes its sets may have together, and which of them must go.
//!
//! Processes share the folder by locks on files:
//!
//! - *In use*: shared, one for each set, until the data set is dropped. It is taken while the account is held. Nobody waits
//!   for it.
//! - *Reader*: exclusive, one for each reader of a set, also until the data set is dropped. Nobody waits for it. Whoever
//!   finds it locked knows that the reader lives.
//! - *Account*: exclusive, and short. While a thread holds it, the thread waits for no other lock, and for no network.
//! - *Writer*: exclusive, one for each set, while shards are written into the set. The writer holds no other lock but *in
//!   use*. Others wait for it as long as files grow.
//!
//! The system releases the locks of a process when it ends, however it ends.

use super::{
    disk::free,
    ours,
    set::{COPIES, Id, Seen, Set, strange, take},
};
use crate::error::DataError;
use crc32fast::hash;
use parking_lot::{Mutex, MutexGuard};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// The file of the account. It is also what marks the folder as a cache.
const ACCOUNT: &str = "burn-pinned-cache";
/// Its kind, and its version: the last byte.
const MAGIC: &[u8; 8] = b"burnpca1";
/// A process that holds the account for longer has been stopped.
const PATIENCE: Duration = Duration::from_secs(30);
/// Nobody holds the account for long.
const PAUSE: Duration = Duration::from_micros(200);

/// A folder with a limit. Several processes may share it.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    limit: u64,
    account: Mutex<File>,
    /// Whether its disk has failed. Then nobody waits for it any more.
    is_off: AtomicBool,
    /// How long the account is waited for.
    pub(super) patience: Duration,
}

impl Folder {
    /// Opens a folder, and makes it if need be.
    ///
    /// # Errors
    /// If it may be somebody else's, if it cannot be written, if another version has made it, or if the disk has less room
    /// than the limit.
    pub(crate) fn open(path: &Path, limit: u64) -> Result<Self, Refusal> {
        let open = || {
            ours::top(path)?;
            let folder = Self {
                path: path.into(),
                limit,
                account: Mutex::new(ours::open(&path.join(ACCOUNT))?),
                is_off: AtomicBool::new(false),
                patience: PATIENCE,
            };
            let mut account = folder.lock()?;
            let held = account.count()?;
            let room = free(path)?.map(|free| free.saturating_add(held));
            drop(account);
            Ok((folder, room))
        };
        let (folder, room) = open().map_err(|error| Refusal::of(path, error))?;
        match room {
            Some(room) if limit > room => Err(Refusal::Wrong(DataError::Option {
                option: "cache",
                problem: format!("the limit is {limit} bytes, and {} has room for {room}", path.display()),
                advice: format!("write `.cache({path:?}, {room})` or less, or name a folder on a larger disk"),
            })),
            _ => Ok(folder),
        }
    }

    /// Takes the account. It waits for others, who hold it shortly: threads at the mutex, processes at the file.
    pub(crate) fn lock(&self) -> io::Result<Account<'_>> {
        let end = Instant::now() + self.patience;
        let stuck = || {
            let problem = format!("another process holds {}, and does not go on", self.path.join(ACCOUNT).display());
            io::Error::new(io::ErrorKind::TimedOut, problem)
        };
        let file = self.account.try_lock_until(end).ok_or_else(stuck)?;
        while !take(&file)? {
            if self.is_off() || Instant::now() > end {
                return Err(stuck());
            }
            thread::sleep(PAUSE);
        }
        let mut account = Account { folder: self, file, total: 0 };
        account.total = match account.read()? {
            Some(total) => total,
            None => account.count()?,
        };
        Ok(account)
    }

    pub(super) fn is_off(&self) -> bool {
        self.is_off.load(Relaxed)
    }

    /// Returns whether it was on.
    #[cfg(all(feature = "remote", unix))]
    pub(super) fn turn_off(&self) -> bool {
        !self.is_off.swap(true, Relaxed)
    }

    #[cfg(all(feature = "remote", unix))]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    #[cfg(all(feature = "remote", unix))]
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }
}

/// The account, while this thread of this process alone has it.
#[derive(Debug)]
pub(crate) struct Account<'a> {
    folder: &'a Folder,
    file: MutexGuard<'a, File>,
    /// The bytes that all sets have reserved. Where a process was killed it may be too high, until the next `open`.
    total: u64,
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl Account<'_> {
    /// The total that the file says. `None` if it is new or damaged.
    fn read(&mut self) -> io::Result<Option<u64>> {
        let mut file = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        (&mut *self.file).take(24).read_to_end(&mut file)?;
        if !MAGIC.starts_with(&file[..file.len().min(8)]) {
            return Err(strange(&self.folder.path.join(ACCOUNT)));
        }
        let word = |at: usize| file.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        Ok(word(8).filter(|total| word(16) == Some(hash(&total.to_le_bytes()).into())))
    }

    fn write(&mut self, total: u64) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(total.to_le_bytes());
        bytes.extend(u64::from(hash(&total.to_le_bytes())).to_le_bytes());
        self.total = total;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&bytes)
    }

    /// Counts anew what all sets have reserved. Nobody reserves meanwhile.
    fn count(&mut self) -> io::Result<u64> {
        let total = Seen::all(&self.folder.path)?.iter().fold(0u64, |total, set| total.saturating_add(set.bytes));
        self.write(total)?;
        Ok(total)
    }

    /// Opens a set of this folder, and tells whether nobody else has it open.
    pub(crate) fn open(&mut self, id: Id) -> io::Result<(Set, bool)> {
        Set::open(&self.folder.path, id)
    }

    /// Notes how many bytes a set has, whatever was noted before.
    pub(crate) fn correct(&mut self, set: &Set, reserved: u64) -> io::Result<()> {
        set.set_reserved(reserved)?;
        self.count().map(drop)
    }

    /// The bytes that may still be reserved.
    pub(crate) fn room(&self) -> u64 {
        self.folder.limit.saturating_sub(self.total)
    }

    /// Reserves more bytes for a set. The caller has looked whether there is [`room`](Self::room).
    #[cfg(all(feature = "remote", unix))]
    pub(super) fn reserve(&mut self, set: &Set, bytes: u64) -> io::Result<()> {
        if bytes > 0 {
            self.write(self.total.saturating_add(bytes))?; // first: a process that is killed here leaves it too high
            set.set_reserved(set.reserved()?.saturating_add(bytes))?;
        }
        Ok(())
    }

    /// Evicts sets that nobody has open, those first that were opened longest ago, until there is room for so many bytes
    /// or no such set is left.
    pub(crate) fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        let wanted = bytes.min(self.folder.limit);
        let is_enough =
            |account: &Self| account.total <= account.folder.limit && account.folder.limit - account.total >= wanted;
        if is_enough(self) {
            return Ok(());
        }
        let mut sets = Seen::all(&self.folder.path)?;
        sets.sort_by_key(|set| set.opened);
        let mut looks = COPIES;
        for set in sets {
            match set.evict(looks)? {
                true => drop(self.count()?),
                false => looks = 1, // copies of processes have ended meanwhile, and others wait for the account
            }
            if is_enough(self) {
                break;
            }
        }
        Ok(())
    }
}

/// Why there is no cache.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The folder, or something in it, may be somebody else's. The cache is as if there were none.
    Foreign(PathBuf, io::Error),
    Wrong(DataError),
}

impl Refusal {
    pub(super) fn of(path: &Path, error: io::Error) -> Self {
        if ours::is_foreign(&error) { Self::Foreign(path.into(), error) } else { Self::Wrong(unusable(path, &error)) }
    }
}

/// For what cannot be without a cache.
impl From<Refusal> for DataError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Foreign(path, error) => unusable(&path, &error),
            Refusal::Wrong(error) => error,
        }
    }
}

/// What is wrong with a folder that cannot be a cache.
pub(crate) fn unusable(path: &Path, error: &io::Error) -> DataError {
    DataError::Option {
        option: "cache",
        problem: format!("{} cannot be used: {error}", path.display()),
        advice: "name an empty folder, or a new one, that can be written to".into(),
    }
}
