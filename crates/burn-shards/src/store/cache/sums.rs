//! Checksums of the whole files of a set. A file is believed if it is the one that was written.

use super::ours;
use crc32fast::{Hasher, hash};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    fs::{self, File, Metadata},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
    thread,
    time::{Duration, SystemTime},
};

/// The file of the checksums. Lines are added to it: the last one of a number counts.
pub(super) const SUMS: &str = "sums";
/// Number, bytes, checksum, the two words of a stamp, and the checksum of all this.
const WORDS: usize = 6;
const LINE: usize = WORDS * 8;
/// So many lines of a file are kept before they are written anew.
const LINES: usize = 4;
/// A file that changes within this time after another change may have the same time of change: by the ticks of the system, or
/// where the disk notes whole seconds.
const TICK: Duration = Duration::from_millis(20);
const SECONDS: Duration = Duration::from_secs(2);

/// What so many files need for their checksums.
pub(crate) fn bytes_of(files: usize) -> u64 {
    files.saturating_mul(LINES * LINE) as u64
}

/// What is noted of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Noted {
    bytes: u64,
    checksum: u32,
    stamp: [u64; 2],
}

/// The checksums of a set. Only who holds its writer lock may have them.
#[derive(Debug)]
pub(crate) struct Sums {
    file: Mutex<File>,
    noted: HashMap<u64, Noted>,
}

impl Sums {
    /// Reads those of a set's folder.
    pub(crate) fn open(set: &Path) -> io::Result<Self> {
        let (mut file, mut bytes) = (ours::open(&set.join(SUMS))?, Vec::new());
        file.read_to_end(&mut bytes)?;
        // What a process was writing when it was killed is cut off.
        let lines = bytes.as_chunks::<LINE>().0;
        let noted: HashMap<u64, Noted> = lines.iter().map_while(read).collect();
        let mut end = lines.iter().map_while(read).count() * LINE;
        if end > noted.len() * LINES * LINE {
            let lines: Vec<u8> = noted.iter().flat_map(|(number, noted)| line(*number, *noted)).collect();
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&lines)?;
            end = lines.len();
        }
        file.set_len(end as u64)?;
        file.seek(SeekFrom::Start(end as u64))?;
        Ok(Self { file: Mutex::new(file), noted })
    }

    /// Whether a file has the bytes that were written. It is read, unless it was read before and is the same since.
    pub(crate) fn has(&self, number: u64, path: &Path, bytes: u64) -> bool {
        let Some(noted) = self.noted.get(&number).filter(|noted| noted.bytes == bytes) else { return false };
        let look = || {
            let meta = fs::symlink_metadata(path)?;
            if !meta.is_file() || meta.len() != bytes {
                return Ok(false);
            }
            if stamp(&meta).is_some_and(|stamp| stamp == noted.stamp) {
                return Ok(true);
            }
            let is_good = checksum(&mut ours::existing(path)?)? == noted.checksum;
            if is_good {
                self.note(number, path, noted.checksum)?;
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
        let noted = Noted { bytes: meta.len(), checksum, stamp: stamp(&meta).unwrap_or_default() };
        self.file.lock().write_all(&line(number, noted))
    }
}

fn line(number: u64, Noted { bytes, checksum, stamp: [one, other] }: Noted) -> Vec<u8> {
    let mut line: Vec<u8> =
        [number, bytes, checksum.into(), one, other].iter().flat_map(|word| word.to_le_bytes()).collect();
    line.extend(u64::from(hash(&line)).to_le_bytes());
    line
}

fn read(line: &[u8; LINE]) -> Option<(u64, Noted)> {
    let (text, check) = line.split_at(LINE - 8);
    let mut words = text.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
    let mut next = || words.next();
    let (number, bytes, checksum) = (next()?, next()?, u32::try_from(next()?).ok()?);
    let noted = Noted { bytes, checksum, stamp: [next()?, next()?] };
    (check == u64::from(hash(text)).to_le_bytes()).then_some((number, noted))
}

/// What changes when a file does: its number on the disk and the time of its last change, which nobody can set. `None` if that
/// was just now, since another change might have the same time.
fn stamp(meta: &Metadata) -> Option<[u64; 2]> {
    let (number, changed) = change(meta)?;
    let tick = if changed.subsec_nanos() == 0 { SECONDS } else { TICK };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    (changed.saturating_add(tick) <= now).then_some([number, changed.as_nanos() as u64])
}

#[cfg(unix)]
fn change(meta: &Metadata) -> Option<(u64, Duration)> {
    use std::os::unix::fs::MetadataExt;
    let (seconds, more) = (u64::try_from(meta.ctime()).ok()?, u32::try_from(meta.ctime_nsec()).ok()?);
    Some((meta.ino(), Duration::new(seconds, more)))
}

/// There each `open` reads the file.
#[cfg(not(unix))]
fn change(_: &Metadata) -> Option<(u64, Duration)> {
    None
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
        let noted = Noted { bytes: 7, checksum: 3, stamp: [1, u64::MAX] };
        let good: [u8; LINE] = line(5, noted).try_into().unwrap();
        assert_eq!(read(&good), Some((5, noted)));
        for at in 0..LINE * 8 {
            let mut bad = good;
            bad[at / 8] ^= 1 << (at % 8);
            assert_eq!(read(&bad), None, "bit {at}");
        }
    }
}
