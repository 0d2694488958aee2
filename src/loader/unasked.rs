//! The errors of a loader that its program has not asked for.
//!
//! Burn's learner stops at a batch that fails as at the end of a training, and its dashboard forgets the error. So the
//! drop of the last copy of a loader tells the errors, unless the statistics were asked for since.

use crate::{
    fault::{Error, catch},
    sync::locks::Mutex,
};
use std::mem;

/// Tells errors at its drop that nobody has asked for. All copies of a loader share it.
#[derive(Debug, Default)]
pub(crate) struct Unasked(Mutex<Errors>);

#[derive(Debug, Default)]
struct Errors {
    count: usize,
    first: String,
}

impl Unasked {
    /// Notes an error that `next()` returns.
    pub(super) fn note(&self, error: &Error) {
        let is_first = self.0.lock().count == 0;
        // The text may be made by user code, which is not to run under a lock.
        let text = is_first.then(|| catch(|| error.to_string()).unwrap_or_else(|caught| caught.message));
        let mut errors = self.0.lock();
        errors.count += 1;
        errors.first = text.unwrap_or_else(|| mem::take(&mut errors.first));
    }

    /// Notes that the statistics were asked for.
    pub(super) fn asked(&self) {
        drop(mem::take(&mut *self.0.lock()));
    }
}

impl Drop for Unasked {
    fn drop(&mut self) {
        let Errors { count, first } = mem::take(self.0.get_mut());
        if count == 0 {
            return;
        }
        let errors = if count == 1 { "an error".into() } else { format!("{count} errors") };
        let text = format!(
            "burn-pinned: `next()` returned {errors}, and nobody asked the loader's statistics (`stats().errors`) since; the \
             first: {first}"
        );
        // The logger is user code, and stderr may be closed.
        let _ = catch(|| match log::log_enabled!(log::Level::Error) {
            true => log::error!("{text}"),
            false => eprintln!("{text}"),
        });
    }
}
