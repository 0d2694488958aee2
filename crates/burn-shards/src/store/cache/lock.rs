//! Locks on files, between processes. The system releases those of a process when it ends, however it ends.

use std::{
    fs::TryLockError,
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// A process that starts another one has made a copy of itself, which has its locks until that program runs.
pub(super) const COPIES: Duration = Duration::from_millis(100);
/// Who holds a lock for longer that is held for a short time has been stopped.
const STOPPED: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(5);

/// Tries to take a lock for this time. False if another handle of the file has it all that time.
pub(super) fn taken(time: Duration, take: impl Fn() -> Result<(), TryLockError>) -> io::Result<bool> {
    let since = Instant::now();
    loop {
        match take() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if since.elapsed() >= time => return Ok(false),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
        }
    }
}

/// Waits for a lock that nobody holds for long.
///
/// # Errors
/// If somebody does.
pub(super) fn wait(path: &Path, take: impl Fn() -> Result<(), TryLockError>) -> io::Result<()> {
    if taken(STOPPED, take)? {
        return Ok(());
    }
    let problem = format!("another process holds {}, and does not go on; end it", path.display());
    Err(io::Error::new(io::ErrorKind::TimedOut, problem))
}
