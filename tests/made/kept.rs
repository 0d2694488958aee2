//! What the tests log. A process has one logger, so all of them share it.

use log::{LevelFilter, Log, Metadata, Record};
use std::sync::Mutex;

struct Kept(Mutex<String>);

static KEPT: Kept = Kept(Mutex::new(String::new()));

impl Log for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Debug
    }

    fn log(&self, record: &Record<'_>) {
        self.0.lock().unwrap().push_str(&format!("{} {} {}\n", record.level(), record.target(), record.args()));
    }

    fn flush(&self) {}
}

/// Keeps from now on what is logged.
pub fn keep() {
    _ = log::set_logger(&KEPT).map(|()| log::set_max_level(LevelFilter::Debug));
}

/// What was logged since.
pub fn kept() -> String {
    KEPT.0.lock().unwrap().clone()
}
