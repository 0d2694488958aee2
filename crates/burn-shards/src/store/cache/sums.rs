//! Checksums of the whole files of a set. A file is believed if it is the one that was written.

use super::{
    ours,
    stamp::{TICK, stamp},
};
use crc32fast::{Hasher, hash};
use parking_lot::Mutex;
use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
    thread,
};

/// The file of the checksums. Each file of the set has a line at its own place.
const SUMS: &str = "sums";
/// Five numbers: bytes, checksum, the two words of a stamp, and the checksum of these and of the number of the file.
const LINE: usize = 5 * 8;

/// The bytes of the checksums of this number of files.
pub(crate) fn bytes_of(files: usize) -> u64 {
    files.saturating_mul(LINE) as u64
}

/// The checksums of a set. They are in a locked file: only one process writes shards into the set.
#[derive(Debug)]
pub(crate) struct Sums(Mutex<File>);

impl Sums {
    /// The file, which the caller locks.
    pub(super) fn file(set: &Path) -> io::Result<File> {
        ours::open(&set.join(SUMS))
    }

    pub(super) fn new(file: File) -> Self {
        Self(Mutex::new(file))
    }

    /// Whether a file has the bytes that were written. It is read, unless it was read before and is the same since.
    pub(crate) fn has(&self, number: u64, path: &Path, bytes: u64) -> bool {
        let Some([noted, sum, stamped @ ..]) = self.noted(number) else { return false };
        let look = || {
            let meta = fs::symlink_metadata(path)?;
            if !meta.is_file() || [meta.len(), noted] != [bytes; 2] {
                return Ok(false);
            }
            if stamp(&meta) == Some(stamped) {
                return Ok(true);
            }
            let found = checksum(&mut ours::existing(path)?)?;
            let is_good = sum == u64::from(found);
            if is_good {
                self.note(number, path, found)?;
            }
            Ok(is_good)
        };
        look().unwrap_or_else(|error: io::Error| {
            log::warn!("{} is made again: {error}", path.display());
            false
        })
    }

    /// Notes that a file is there, and what its checksum is.
    pub(crate) fn note(&self, number: u64, path: &Path, checksum: u32) -> io::Result<()> {
        let mut meta = fs::symlink_metadata(path)?;
        if stamp(&meta).is_none() {
            thread::sleep(TICK); // so that the next `open` need not read it
            meta = fs::symlink_metadata(path)?;
        }
        let [number_on_disk, changed] = stamp(&meta).unwrap_or_default();
        let mut file = self.0.lock();
        file.seek(SeekFrom::Start(number * LINE as u64))?;
        file.write_all(&line(number, [meta.len(), checksum.into(), number_on_disk, changed]))
    }

    fn noted(&self, number: u64) -> Option<[u64; 4]> {
        let (mut file, mut line) = (self.0.lock(), [0; LINE]);
        file.seek(SeekFrom::Start(number * LINE as u64)).and_then(|_| file.read_exact(&mut line)).ok()?;
        read(number, &line)
    }
}

fn line(number: u64, words: [u64; 4]) -> Vec<u8> {
    let mut line = words.map(u64::to_le_bytes).concat();
    let sum = hash(&[&line[..], &number.to_le_bytes()].concat());
    line.extend(u64::from(sum).to_le_bytes());
    line
}

fn read(number: u64, line: &[u8; LINE]) -> Option<[u64; 4]> {
    let words = line.as_chunks().0.first_chunk::<4>()?.map(u64::from_le_bytes);
    (self::line(number, words) == line).then_some(words)
}

fn checksum(file: &mut File) -> io::Result<u32> {
    let (mut sum, mut piece) = (Hasher::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(sum.finalize()),
            Ok(bytes) => sum.update(piece.get(..bytes).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_damaged_is_none() {
        let noted = [7, 3, 1, u64::MAX];
        let good: [u8; LINE] = line(5, noted).try_into().unwrap();
        assert_eq!((read(5, &good), read(6, &good)), (Some(noted), None));
        for at in 0..LINE * 8 {
            let mut bad = good;
            bad[at / 8] ^= 1 << (at % 8);
            assert_eq!(read(5, &bad), None, "bit {at}");
        }
    }
}
