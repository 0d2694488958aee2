//! The folder of a cache: its sets, the limit of their bytes, and which sets are evicted.
//!
//! Processes share it by locks on files:
//!
//! - *Folder*: exclusive, on the file that marks the folder. It is held while a set is opened and others are evicted. A thread that holds
//!   it does not wait for the network. It waits for other locks only as long as copies of processes hold them.
//! - *In use*: shared, one for each set, until the data set is dropped. It is taken while the folder lock is held. Nothing waits for it.
//! - *Shards*: exclusive, one for each set (`shards.rs`). The writer of shards holds no other lock except *in use*.

use super::{
    disk::{BLOCK, count, free, is_half_written},
    lock, ours,
};
use crate::{error::DataError, store::Object, system::locks::Mutex};
use crc32fast::hash;
use fnv::FnvHasher;
use std::{
    collections::HashMap,
    fs::{self, DirEntry, File},
    hash::Hasher,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

/// The file that marks the folder as a cache, and its text, which differs in each version.
const MARK: &str = "burn-pinned-cache";
const MARKED: &[u8] = b"burnpca2";
/// The names of sets: this, a hash, and the bytes reserved for the set, if any: `set-<hash>-<bytes>`.
const SET: &str = "set-";
/// The digits of a hash.
const DIGITS: usize = 24;
/// Each reader of a set holds a shared lock on this file. Its time is when the set was opened last.
const IN_USE: &str = "in-use";
/// How the names of the folders of pages begin.
pub(super) const PAGES: &str = "pages-";
/// A process that holds the folder for longer counts as stopped.
const PATIENCE: Duration = Duration::from_secs(30);

/// An open set: the folder of one data set in a cache. Until it is dropped, no process evicts it.
#[derive(Debug)]
pub(crate) struct CacheSet {
    cache: PathBuf,
    pub(super) folder: PathBuf,
    /// What [`count`] has counted.
    counted: Mutex<HashMap<PathBuf, (SystemTime, u64)>>,
    /// Locked.
    _in_use: File,
}

/// Names a data set by its objects, in order. If the name, size or tag of an object differs, the name differs. `kind` says what the set
/// keeps.
pub(crate) fn id(kind: &str, objects: &[Object]) -> String {
    let (mut all, mut fnv) = (kind.as_bytes().to_vec(), FnvHasher::default());
    for Object { name, bytes, tag } in objects {
        all.extend([name.len() as u64, *bytes, *tag].map(u64::to_le_bytes).as_flattened());
        all.extend(name.as_bytes());
    }
    fnv.write(&all);
    format!("{SET}{:016x}{:08x}", fnv.finish(), hash(&all))
}

impl CacheSet {
    /// Opens a set that needs this number of bytes, in a cache with this limit, and makes both if necessary. If there is not enough space,
    /// sets that no process has open are evicted, least recently opened first.
    ///
    /// With `is_reserved`, the space is reserved before the files exist. Otherwise other sets may take it meanwhile.
    ///
    /// # Errors
    /// If the folder may be somebody else's ([`is_foreign`](super::is_foreign)), cannot be written, or was made by another version, if the
    /// disk has less space than the limit, or if there is no space to reserve.
    pub(crate) fn open(cache: &Path, limit: u64, id: &str, bytes: u64, is_reserved: bool) -> io::Result<Self> {
        ours::top(cache)?;
        let (_locked, mut counted) = (lock(cache)?, HashMap::new());
        let folder = cache.join(if is_reserved { format!("{id}-{bytes}") } else { id.into() });
        let mut sets = sets(cache, &mut counted)?;
        let room = free(cache)?.saturating_add(sum(&sets));
        if limit > room {
            let problem = format!("the limit is {limit} bytes, and there is room for {room}");
            return Err(io::Error::other(format!("{problem} (write `.cache({cache:?}, {room})` or less)")));
        }
        sets.sort_by_key(|set| set.opened);
        let own = sets.iter().find(|set| set.folder == folder).map_or(0, |set| set.bytes);
        let mut others = sum(&sets).saturating_sub(own);
        let (wanted, until) = (bytes.max(own).min(limit), Instant::now() + lock::COPIES);
        for set in sets {
            let is_own = set.folder == folder;
            let is_too_much = if is_own { own > limit } else { others > limit - wanted };
            if is_too_much && evict(&set.folder, until)? && !is_own {
                others = others.saturating_sub(set.bytes);
            }
        }
        let left = limit.saturating_sub(others);
        if is_reserved && bytes > left {
            let enough = others.saturating_add(bytes);
            return Err(io::Error::other(format!(
                "the decompressed shards take {bytes} bytes, and other data sets that are open leave {left} of the limit of \
                 {limit} (write `.cache({cache:?}, {enough})`)"
            )));
        }
        let in_use = use_set(&folder)?;
        Ok(Self { cache: cache.into(), folder, counted: Mutex::new(counted), _in_use: in_use })
    }

    /// The bytes that all sets of the cache have on disk or have reserved, and those of the mark.
    #[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "only pages are kept as far as there is room"))]
    pub(super) fn held(&self) -> io::Result<u64> {
        Ok(sum(&sets(&self.cache, &mut self.counted.lock())?).saturating_add(BLOCK))
    }
}

/// Locks a cache until the file is closed, and looks at its mark.
fn lock(cache: &Path) -> io::Result<File> {
    let (path, mut found) = (cache.join(MARK), Vec::new());
    let mut mark = ours::open(&path)?;
    lock::wait(PATIENCE, &format!("holds {}", path.display()), || mark.try_lock(), || Ok(0))?;
    (&mark).take(MARKED.len() as u64).read_to_end(&mut found)?;
    if found.is_empty() {
        mark.write_all(MARKED)?;
    } else if found != MARKED {
        let problem = format!("{} was not made by this version", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok(mark)
}

/// Makes the folder of a set if necessary, and locks it against eviction. If no other process has it open, half-written files are removed.
/// Only a thread with the folder lock may call this.
fn use_set(folder: &Path) -> io::Result<File> {
    ours::inner(folder)?;
    let path = folder.join(IN_USE);
    let in_use = ours::open(&path)?;
    let is_alone = lock::taken(Instant::now() + lock::COPIES, || in_use.try_lock())?;
    tidy(folder, is_alone)?;
    in_use.set_modified(SystemTime::now())?;
    if is_alone {
        in_use.unlock()?;
    }
    // An exclusive lock on this file is taken only under the folder lock, which this process holds. So only a copy of a process that had
    // the folder lock before may still hold one.
    lock::wait(PATIENCE, &format!("holds {}", path.display()), || in_use.try_lock_shared(), || Ok(0))?;
    Ok(in_use)
}

/// Checks that the folders in a set are the user's own, and removes half-written files if their writers are gone.
pub(super) fn tidy(folder: &Path, are_gone: bool) -> io::Result<()> {
    for entry in entries(folder)? {
        if entry.file_name().to_string_lossy().starts_with(PAGES) {
            ours::inner(&entry.path())?;
            tidy(&entry.path(), are_gone)?;
        } else if are_gone && is_half_written(&entry) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes a set, unless another process has it open until this time. Only a thread with the folder lock may call this.
fn evict(set: &Path, until: Instant) -> io::Result<bool> {
    let in_use = ours::open(&set.join(IN_USE))?;
    let is_free = lock::taken(until, || in_use.try_lock())?;
    if is_free {
        fs::remove_dir_all(set)?; // this follows no links
    }
    Ok(is_free)
}

/// What is visible of a set without opening it.
#[derive(Debug)]
struct SetInfo {
    folder: PathBuf,
    /// The bytes of its files or the reserved bytes, whichever are more.
    bytes: u64,
    opened: SystemTime,
}

fn sets(cache: &Path, counted: &mut HashMap<PathBuf, (SystemTime, u64)>) -> io::Result<Vec<SetInfo>> {
    let seen = |entry: DirEntry| {
        let (folder, name) = (entry.path(), entry.file_name().into_string().ok()?);
        let name = name.strip_prefix(SET)?;
        let (hash, reserved) = name.split_once('-').unwrap_or((name, "0"));
        let is_set = hash.len() == DIGITS && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !is_set || !entry.file_type().ok()?.is_dir() {
            return None; // a stranger's
        }
        let opened = fs::symlink_metadata(folder.join(IN_USE)).and_then(|meta| meta.modified());
        let bytes = count(&folder, counted).max(reserved.parse().ok()?);
        Some(SetInfo { folder, bytes, opened: opened.unwrap_or(SystemTime::UNIX_EPOCH) })
    };
    Ok(entries(cache)?.into_iter().filter_map(seen).collect())
}

fn sum(sets: &[SetInfo]) -> u64 {
    sets.iter().fold(0, |sum, set| sum.saturating_add(set.bytes))
}

pub(super) fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    fs::read_dir(folder)?.collect()
}

/// The error of a folder that cannot be a cache.
pub(crate) fn unusable(path: &Path, error: &io::Error) -> DataError {
    DataError::option(
        "cache",
        format!("{} cannot be used: {error}", path.display()),
        "name an empty folder, or a new one, that can be written to",
    )
}
