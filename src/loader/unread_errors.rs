//! The error at which a training loop stopped, and that its program has not asked for.
//!
//! Burn's learner stops at a batch that fails as at the end of a training, and its dashboard forgets the error. So the
//! drop of the last copy of a loader tells the error, unless the loop went on or the statistics were asked for since.

use crate::{
    fault::{Error, catch},
    sync::locks::Mutex,
};

/// Loops whose errors are kept. One is enough to be told.
const LOOPS: usize = 16;

/// Tells an error at its drop that nobody has asked for. All copies of a loader share it: each error is that of one loop, by the
/// number of the error.
#[derive(Debug, Default)]
pub(crate) struct UnreadErrors(Mutex<(u64, Vec<(u64, String)>)>);

impl UnreadErrors {
    /// Notes an error that `next()` returns, and gives it a number.
    pub(super) fn note(&self, error: &Error) -> u64 {
        // The text may be made by user code, which is not to run under a lock.
        let text = catch(|| error.to_string()).unwrap_or_else(|caught| caught.message);
        let (number, errors) = &mut *self.0.lock();
        *number += 1;
        if errors.len() < LOOPS {
            errors.push((*number, text));
        }
        *number
    }

    /// Notes that the loop of an error has gone on.
    pub(super) fn forget(&self, number: u64) {
        self.0.lock().1.retain(|(other, _)| *other != number);
    }

    /// Notes that the statistics were asked for.
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
