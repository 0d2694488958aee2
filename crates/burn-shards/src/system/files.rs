//! Opens files within the process's limit of open files: often 1,024, and 256 on macOS.
//!
//! Shards stay open between reads. All data sets of the process keep them in one pool. If a file cannot be opened because too many are
//! open, the pool closes one, and the file is tried again.

mod pool;

pub(crate) use pool::PooledFile;
use std::{
    fs::{self, File},
    io,
    path::Path,
    thread,
    time::Duration,
};

/// How often a file is tried once the pool has no file left to close, and the pause between two attempts. Files that are being read can
/// soon be closed.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// Whether an error says that the process or the machine has too many open files.
pub fn are_too_many(error: &io::Error) -> bool {
    // The standard library has no stable `ErrorKind` for these errors.
    let codes: &[i32] = if cfg!(windows) { &[4] } else { &[23, 24] };
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// Opens a file to read it.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    with_room(|| File::open(path))
}

/// Reads a whole file, which must be a regular one: opening a pipe would wait for its writer, and a device may be endless.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    regular(path)?;
    with_room(|| fs::read(path))
}

/// As [`read`], for a text in UTF-8.
#[cfg(feature = "tokenizers")]
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Checks before a file is opened that it is a regular one.
pub(crate) fn regular(path: &Path) -> io::Result<()> {
    let is_file = path.metadata()?.is_file();
    is_file.then_some(()).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
}

/// Calls `open`, and closes files of the pool while it fails because too many files are open.
pub(crate) fn with_room<T>(open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    while_full(open, are_too_many)
}

/// As [`with_room`], for errors of any type: `is_full` says whether too many files are open.
pub(crate) fn while_full<T, E>(open: impl Fn() -> Result<T, E>, is_full: impl Fn(&E) -> bool) -> Result<T, E> {
    let mut tries = TRIES;
    loop {
        match open() {
            Err(error) if is_full(&error) => {
                if pool::close_one() {
                    continue;
                }
                if tries == 0 {
                    return Err(error);
                }
                tries -= 1;
                thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}
