//! What is done about images that cannot be read.

use burn_pinned::{BadSamples, Error, fault::Quota};
use clap::ValueEnum;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bad {
    /// The first one ends the training
    Fail,
    /// They are left out, up to 1 % of an epoch
    Skip,
    /// The next good image takes the place
    Replace,
}

impl Bad {
    pub(crate) fn policy(self) -> BadSamples {
        match self {
            Self::Fail => BadSamples::Fail,
            Self::Skip => BadSamples::Skip(Quota::Share(0.01)),
            Self::Replace => BadSamples::Replace { tries: 8 },
        }
    }
}

/// The bad samples of a loader. Each epoch meets them again, but the log names each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named(Arc<Mutex<HashSet<usize>>>);

impl Named {
    /// Takes what failed: on a worker.
    pub(crate) fn fault(&self, error: &Error) {
        if let Some(index) = error.place().and_then(|place| place.index)
            && self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(index)
        {
            ::log::warn!("bad sample: {error}");
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
