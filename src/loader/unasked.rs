//! The error at which a training loop stopped, and that its program has not asked for.
//!
//! Burn's learner stops at a batch that fails as at the end of a training, and its dashboard forgets the error. So the
//! drop of the last copy of a loader tells the error, unless the loop went on or the statistics were asked for since.

use crate::{
    fault::{Error, catch},
    sync::locks::Mutex,
};

/// Tells an error at its drop that nobody has asked for. All copies of a loader share it.
#[derive(Debug, Default)]
pub(crate) struct UnreadErrors(Mutex<Option<String>>);

impl UnreadErrors {
    /// Notes an error that `next()` returns.
    pub(super) fn note(&self, error: &Error) {
        // The text may be made by user code, which is not to run under a lock.
        let text = catch(|| error.to_string()).unwrap_or_else(|caught| caught.message);
        self.0.lock().get_or_insert(text);
    }

    /// Notes that the loop has gone on after its error, or that the statistics were asked for.
    pub(super) fn forget(&self) {
        drop(self.0.lock().take());
    }
}

impl Drop for UnreadErrors {
    fn drop(&mut self) {
        let Some(error) = self.0.get_mut().take() else { return };
        let text = format!(
            "burn-pinned: a loop stopped at an error of `next()`, and nobody asked the loader's statistics (`stats().errors`) \
             since: {error}"
        );
        // The logger is user code, and stderr may be closed.
        let _ = catch(|| match log::log_enabled!(log::Level::Error) {
            true => log::error!("{text}"),
            false => eprintln!("{text}"),
        });
    }
}
