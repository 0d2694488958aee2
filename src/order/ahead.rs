//! Datasets that fetch samples before they are read.

use crate::{
    fault::discard,
    vocabulary::{BatchKey, Place, Stage},
};
use std::{any::Any, time::Duration};

/// A dataset that can fetch samples from afar before workers ask for them. The option
/// [`reads_ahead`](crate::PinnedDataLoaderBuilder::reads_ahead) tells it the order of each epoch.
///
/// ```
/// use burn_pinned::order::{Guard, ReadAhead};
///
/// struct Told;
/// impl ReadAhead for Told {
///     fn begin(&self, order: Box<dyn Iterator<Item = usize> + Send>) -> Guard {
///         let first: Vec<usize> = order.take(8).collect(); // and ask a server for these
///         Guard::new(first)
///     }
/// }
/// ```
///
/// It changes when bytes come, and never which bytes: the samples of an epoch do not depend on it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot fetch samples ahead",
    label = "this dataset does not implement `ReadAhead`",
    note = "give `reads_ahead` the rows inside your dataset (`data::Rows`), or implement `ReadAhead` for it"
)]
pub trait ReadAhead: Send + Sync {
    /// Begins to fetch these samples, in their order, and returns at once. The iterator may be long, or have no end. Indices
    /// that are beyond the dataset belong to others, and are passed over. Runs in `iter()`; the guard ends with the epoch.
    ///
    /// If it panics, the epoch does not begin, and `next()` gives the error.
    fn begin(&self, order: Box<dyn Iterator<Item = usize> + Send>) -> Guard;

    /// The time so far in which requests waited because a server was busy and had asked for it. The statistics of the loader show
    /// it. Default: none.
    fn asked_to_wait(&self) -> Duration {
        Duration::ZERO
    }
}

/// An epoch for which samples are fetched ahead. Its drop ends the fetching. If the drop of the value in it panics, the
/// panic goes to the log.
#[derive(derive_more::Debug)]
#[debug("Guard")]
pub struct Guard {
    held: Option<Box<dyn Any + Send>>,
}

impl Guard {
    /// Takes whatever ends the fetching when it is dropped.
    pub fn new(held: impl Send + 'static) -> Self {
        Self { held: Some(Box::new(held)) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        discard(Place::batch(Stage::Read, BatchKey::NONE), self.held.take());
    }
}
