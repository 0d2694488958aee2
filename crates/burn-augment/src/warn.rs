//! Warnings, also in programs without a logger.

use std::{
    io::{Write, stderr},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// The number of warnings that a program without a logger sees on standard error.
const MOST: usize = 8;

/// Logs a warning for this log target. If the program has no logger, its first warnings go to standard error.
pub fn warn(target: &str, text: &str) {
    static SHOWN: AtomicUsize = AtomicUsize::new(0);
    if log::max_level() != log::LevelFilter::Off {
        log::warn!(target: target, "{text}");
    } else if SHOWN.fetch_update(Relaxed, Relaxed, |shown| (shown < MOST).then_some(shown + 1)).is_ok() {
        // It is only a warning, so it does not matter if standard error is closed.
        _ = writeln!(stderr(), "warning: {text}");
    }
}
