//! What the loader logs, on stderr.

use log::{LevelFilter, set_logger, set_max_level};

/// Prints from now on what the loader logs.
pub(crate) fn start() {
    if set_logger(&Log).is_ok() {
        set_max_level(LevelFilter::Debug);
    }
}

struct Log;

impl log::Log for Log {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("burn_pinned")
    }
    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{}", record.args());
        }
    }
    fn flush(&self) {}
}
