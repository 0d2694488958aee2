//! Warnings, also in programs without a logger.

use std::{
    io::{Write, stderr},
    sync::{Mutex, PoisonError},
};

/// The number of different warnings that a program without a logger sees on standard error.
const MOST_LINES: usize = 8;

/// Logs a warning for this log target. If the program has no logger, or one that is off, its first different warnings go to standard error.
pub fn warn(target: &str, text: &str) {
    static SHOWN: Mutex<Vec<String>> = Mutex::new(Vec::new());
    if log::max_level() != log::LevelFilter::Off {
        return log::warn!(target: target, "{text}");
    }
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if shown.len() < MOST_LINES && shown.iter().all(|known| known != text) {
        shown.push(text.into());
        // It is only a warning, so it does not matter if standard error is closed.
        _ = writeln!(stderr(), "warning ({target}): {text}");
    }
}
