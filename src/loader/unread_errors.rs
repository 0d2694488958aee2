//! Errors at which a training loop stopped and that the program has not read.
//!
//! When a batch fails, Burn's learner stops as if the training had ended, and its dashboard does not show the error. So
//! dropping the last copy of a loader reports the error, unless the loop continued or the program has called `stats`
//! since.

use crate::{
    fault::{Error, catch},
    sync::locks::Mutex,
};

/// The number of loops whose errors are kept. One reported error is enough.
const LOOPS: usize = 16;

/// When dropped, reports an error that the program has not read. All copies of a loader share it. Each error has a number and belongs to
/// one loop.
#[derive(Debug, Default)]
pub(crate) struct UnreadErrors(Mutex<(u64, Vec<(u64, String)>)>);

impl UnreadErrors {
    /// Notes an error that `next()` returns, and gives it a number.
    pub(super) fn note(&self, error: &Error) -> u64 {
        // User code may make the text, and user code must not run under a lock.
        let text = catch(|| error.to_string()).unwrap_or_else(|caught| caught.message);
        let (number, errors) = &mut *self.0.lock();
        *number += 1;
        if errors.len() < LOOPS {
            errors.push((*number, text));
        }
        *number
    }

    /// Notes that the loop of an error has continued.
    pub(super) fn forget(&self, number: u64) {
        self.0.lock().1.retain(|(other, _)| *other != number);
    }

    /// Notes that the program has called `stats`.
    pub(super) fn forget_all(&self) {
        self.0.lock().1.clear();
    }
}

impl Drop for UnreadErrors {
    fn drop(&mut self) {
        let Some((_, error)) = self.0.get_mut().1.first() else { return };
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
