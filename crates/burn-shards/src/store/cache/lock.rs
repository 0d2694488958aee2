//! Locks on files, between processes. The system releases those of a process when it ends, however it ends.

use std::{
    fs::TryLockError,
    io, thread,
    time::{Duration, Instant},
};

/// A process that starts a program makes a copy of itself first. The copy has all locks of the process until the program runs.
pub(super) const COPIES: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(5);

/// Tries to take a lock until this time, and once at least. False if another handle of the file has it all that time.
pub(super) fn taken(until: Instant, take: impl Fn() -> Result<(), TryLockError>) -> io::Result<bool> {
    loop {
        match take() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => return Ok(false),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
        }
    }
}

/// Waits for a lock, as long as its holder goes on: what `progress` tells changes in each span of `patience`.
///
/// # Errors
/// If the holder does not go on. `does` says what the holder does with the lock.
pub(super) fn wait(
    patience: Duration,
    does: &str,
    take: impl Fn() -> Result<(), TryLockError>,
    progress: impl Fn() -> io::Result<u64>,
) -> io::Result<()> {
    let mut before = progress()?;
    while !taken(Instant::now() + patience, &take)? {
        let now = progress()?;
        if now == before {
            let problem = format!("another process {does}, and does not go on; end it");
            return Err(io::Error::new(io::ErrorKind::TimedOut, problem));
        }
        before = now;
    }
    Ok(())
}
