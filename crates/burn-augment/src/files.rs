//! Opens files although the process may have only a limited number open: often 1,024, and 256 on macOS.

use std::{io, sync::OnceLock, thread, time::Duration};

/// Closes a file that another part of the process keeps open between reads. Returns false if there is none.
static CLOSE_ONE: OnceLock<fn() -> bool> = OnceLock::new();

/// The number of attempts once no file is left to close, and the pause between two attempts.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// Sets the function that closes a file if too many are open. Only the first call counts.
pub fn close_by(close_one: fn() -> bool) {
    let _ = CLOSE_ONE.set(close_one);
}

/// Repeats `open` while it fails because too many files are open.
pub(crate) fn with_room<T>(open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let codes: &[i32] = if cfg!(windows) { &[4] } else { &[23, 24] }; // std has no stable `ErrorKind` for them
    let mut tries = TRIES;
    loop {
        match open() {
            Err(error) if tries > 0 && error.raw_os_error().is_some_and(|code| codes.contains(&code)) => {
                if !CLOSE_ONE.get().is_some_and(|close_one| close_one()) {
                    tries -= 1;
                    thread::sleep(PAUSE);
                }
            }
            done => return done,
        }
    }
}
