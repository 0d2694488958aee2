//! Opens files in a process that may have few open ones: often 1,024, and 256 on macOS.
//!
//! Data sets of shards keep files open between reads. Where another file cannot be opened because too many are open,
//! one of the shards is closed, and the file is tried again.

use std::io;
#[cfg(feature = "vision")]
use std::{fs::File, path::Path, thread, time::Duration};

/// How often a file is tried once no data set has a file left to close, and the pause between two attempts. Files that
/// are being read now are soon free to be closed.
#[cfg(feature = "vision")]
const TRIES: u32 = 50;
#[cfg(feature = "vision")]
const PAUSE: Duration = Duration::from_millis(2);

/// Whether the process, or the machine, has as many open files as it may have.
pub(crate) fn are_too_many(error: &io::Error) -> bool {
    // The standard library has no stable `ErrorKind` for these errors.
    let codes: &[i32] = if cfg!(windows) { &[4] } else { &[23, 24] };
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// Opens a file to read it.
#[cfg(feature = "vision")]
pub(crate) fn open(path: &Path) -> io::Result<File> {
    with_room(|| File::open(path))
}

/// Calls `open`, and closes files of data sets while it fails because too many files are open.
#[cfg(feature = "vision")]
pub(crate) fn with_room<T>(open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let mut tries = TRIES;
    loop {
        match open() {
            Err(error) if are_too_many(&error) => {
                #[cfg(feature = "data")]
                if burn_shards::for_loader::close_one() {
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
