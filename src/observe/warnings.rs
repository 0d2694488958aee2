//! What the loader warns about.

use super::Counters;

/// The number of different warnings that the statistics keep.
const MOST: usize = 16;

/// Logs a warning. If the program has no logger, the first warnings go to standard error.
pub(crate) fn warn(text: &str) {
    burn_augment::for_loader::warn("burn_pinned", text);
}

impl Counters {
    /// Warns, once for a loader with all its copies. The verdict has the warning too.
    pub(crate) fn warn(&self, text: &str) {
        if self.remark(text) {
            warn(text);
        }
    }

    /// Adds a remark to the verdict. Returns whether it is new: two remarks are the same if they are equal up to the first colon. After
    /// [`MOST`], none is new.
    pub(crate) fn remark(&self, text: &str) -> bool {
        let kind = |text: &str| text.split(':').next().map(ToString::to_string);
        let mut is_new = false;
        self.note(|stats| {
            is_new = stats.warnings.len() < MOST && stats.warnings.iter().all(|known| kind(known) != kind(text));
            if is_new {
                stats.warnings.push(text.into());
            }
        });
        is_new
    }
}
