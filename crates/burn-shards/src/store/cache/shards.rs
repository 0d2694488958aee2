//! Decompressed shards of a set. Each is a complete file with its checksum in its name: `<number>-<checksum>-<name>.mds`.

use super::{
    folder::{CacheSet, entries, tidy},
    lock, ours,
};
use crate::{
    store::local::{SAME, changed},
    system::replace::replace_by,
};
use crc32fast::Hasher;
use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// The file that the process that writes shards locks. Shards that have not changed since this file's time are good.
const GOOD: &str = "good-since";
/// How the names of shards end.
const SHARD: &str = ".mds";

/// The shards of a set that only this process writes.
#[derive(Debug)]
pub(crate) struct Shards {
    pub(crate) folder: PathBuf,
    /// Locked.
    file: File,
    good: SystemTime,
    /// The checksums and the files by number.
    there: HashMap<usize, (u32, PathBuf)>,
}

impl Shards {
    /// Waits until no other process writes shards into the set, and removes half-written files. Other processes wait until the shards are
    /// dropped.
    ///
    /// # Errors
    /// If another process holds them, and its files do not grow for `patience`.
    pub(crate) fn open(set: &CacheSet, patience: Duration) -> io::Result<Self> {
        let set = set.folder.as_path();
        let mut file = ours::open(&set.join(GOOD))?;
        let written = || Ok(entries(set)?.iter().filter_map(|entry| Some(entry.metadata().ok()?.len())).sum());
        lock::wait(patience, &format!("decompresses shards into {}", set.display()), || file.try_lock(), written)?;
        tidy(set, true)?;
        let mut nanos = [0; 8];
        let good = file.read_exact(&mut nanos).map_or(0, |()| u64::from_le_bytes(nanos));
        let named = entries(set)?.into_iter().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let [number, sum, _] = name.strip_suffix(SHARD)?.splitn(3, '-').collect::<Vec<_>>().try_into().ok()?;
            Some((number.parse().ok()?, (u32::from_str_radix(sum, 16).ok()?, entry.path())))
        });
        let good = SystemTime::UNIX_EPOCH + Duration::from_nanos(good);
        Ok(Self { folder: set.into(), there: named.collect(), file, good })
    }

    /// Finds a good shard. If a file has changed since all shards were good, it is read and its checksum is compared. A corrupt shard is
    /// removed.
    pub(crate) fn find(&self, number: usize, bytes: u64) -> Option<PathBuf> {
        let (sum, path) = self.there.get(&number)?;
        let is_good = || {
            let meta = fs::symlink_metadata(path)?;
            let is_old = || changed(&meta).is_some_and(|time| time < self.good);
            Ok(meta.is_file() && meta.len() == bytes && (is_old() || checksum(number, path)? == *sum))
        };
        let is_good = is_good().unwrap_or_else(|error: io::Error| {
            log::warn!("{} is made again: {error}", path.display());
            false
        });
        if !is_good {
            let _ = fs::remove_file(path); // the new file may have the same name
        }
        is_good.then(|| path.clone())
    }

    /// Writes a shard. `write` returns its checksum, starting from the given one.
    pub(crate) fn write<E>(
        &self,
        (number, name): (usize, &str),
        refused: impl Fn(io::Error) -> E,
        write: impl FnOnce(&mut File, Hasher) -> Result<u32, E>,
    ) -> Result<PathBuf, E> {
        let (half, mut sum) = (self.folder.join(format!("{number}.tmp")), 0);
        replace_by(&half, ours::create, &refused, |file| write(file, begun(number)).map(|written| sum = written))?;
        let path = self.folder.join(format!("{number:05}-{sum:08x}-{name}{SHARD}"));
        fs::rename(half, &path).map(|()| path).map_err(refused)
    }

    /// Notes that all shards are good.
    pub(crate) fn are_good(mut self) -> io::Result<()> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + SAME).unwrap_or_default();
        self.file.rewind()?;
        self.file.write_all(&(since.as_nanos() as u64).to_le_bytes())
    }
}

/// The checksum starts with the number, so that a shard under another number is not accepted.
fn begun(number: usize) -> Hasher {
    Hasher::new_with_initial(number as u32)
}

fn checksum(number: usize, path: &Path) -> io::Result<u32> {
    let (mut file, mut sum, mut piece) = (ours::to_read(path)?, begun(number), vec![0; 1 << 18]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(sum.finalize()),
            bytes => sum.update(&piece[..bytes]),
        }
    }
}
