//! Decompressed shards of a set. Each is a whole file, and its name has its checksum: `<number>-<checksum>-<name>.mds`.

use super::{
    disk::{SAME, changed},
    folder::{Set, entries, remove_half_written},
    lock, ours,
};
use crc32fast::Hasher;
use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

/// The file that is locked by the process that writes shards. It has a time: shards that have not changed since are good.
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
    /// Waits until nobody else writes shards into the set, and removes what was left half written. Until the shards are
    /// dropped, others wait.
    ///
    /// # Errors
    /// If another process has them, and the files do not grow for so long.
    pub(crate) fn open(set: &Set, patience: Duration) -> io::Result<Self> {
        let set = set.folder();
        let mut file = ours::open(&set.join(GOOD))?;
        let (mut since, mut written) = (Instant::now(), 0);
        while !lock::taken(lock::COPIES, || file.try_lock())? {
            let now = entries(set)?.iter().filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();
            if now != written {
                (since, written) = (Instant::now(), now);
            } else if since.elapsed() > patience {
                let folder = set.display();
                let problem = format!("another process decompresses shards into {folder}, and does not go on; end it");
                return Err(io::Error::new(io::ErrorKind::TimedOut, problem));
            }
        }
        remove_half_written(set)?;
        let mut nanos = [0; 8];
        let good = file.read_exact(&mut nanos).map_or(0, |()| u64::from_le_bytes(nanos));
        let named = entries(set)?.into_iter().filter_map(|entry| {
            let (number, sum) = marks(entry.file_name().to_str()?)?;
            Some((number, (sum, entry.path())))
        });
        let good = SystemTime::UNIX_EPOCH + Duration::from_nanos(good);
        Ok(Self { folder: set.into(), file, good, there: named.collect() })
    }

    /// Finds a shard that has the bytes that were written. It is read for that, if it has changed since it was found good. One
    /// that is not good is removed.
    pub(crate) fn find(&self, number: usize, bytes: u64) -> Option<PathBuf> {
        let (sum, path) = self.there.get(&number)?;
        let is_good = || {
            let meta = fs::symlink_metadata(path)?;
            let is_whole = meta.is_file() && meta.len() == bytes;
            Ok(is_whole
                && (changed(&meta).is_some_and(|time| time < self.good) || checksum(begun(number), path)? == *sum))
        };
        let is_good = is_good().unwrap_or_else(|error: io::Error| {
            log::warn!("{} is made again: {error}", path.display());
            false
        });
        if !is_good {
            let _ = fs::remove_file(path); // the new one may have this very name
        }
        is_good.then(|| path.clone())
    }

    /// Writes a shard. `write` returns its checksum, beginning with the given one.
    pub(crate) fn write<E>(
        &self,
        (number, name): (usize, &str),
        refused: impl Fn(io::Error) -> E,
        write: impl FnOnce(&mut File, Hasher) -> Result<u32, E>,
    ) -> Result<PathBuf, E> {
        let (half, mut sum) = (self.folder.join(format!("{number}.tmp")), 0);
        ours::replace(&half, &refused, |file| write(file, begun(number)).map(|written| sum = written))?;
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

/// The number and the checksum in a name.
fn marks(name: &str) -> Option<(usize, u32)> {
    let (number, rest) = name.strip_suffix(SHARD)?.split_once('-')?;
    Some((number.parse().ok()?, u32::from_str_radix(rest.split_once('-')?.0, 16).ok()?))
}

/// A shard under another number is not believed.
fn begun(number: usize) -> Hasher {
    Hasher::new_with_initial(number as u32)
}

fn checksum(mut sum: Hasher, path: &Path) -> io::Result<u32> {
    let mut from = BufReader::with_capacity(1 << 18, ours::to_read(path)?);
    loop {
        let piece = from.fill_buf()?;
        if piece.is_empty() {
            return Ok(sum.finalize());
        }
        sum.update(piece);
        let bytes = piece.len();
        from.consume(bytes);
    }
}
