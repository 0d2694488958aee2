//! Locks on files, between processes. When a process ends, however it ends, the system releases its locks.

use std::{
    fs::TryLockError,
    io, thread,
    time::{Duration, Instant},
};

/// How long copies of processes may hold locks. A process that starts a program first copies itself (`fork`), and the copy has all its
/// locks until the program runs.
pub(super) const COPIES: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(5);

/// Tries to take a lock until this time, and at least once. False if another handle of the file has it all that time.
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

/// Waits for a lock as long as its holder makes progress: the value of `progress` must change within each `patience`.
///
/// # Errors
/// If the holder makes no progress. `does` says what the holder does with the lock.
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
