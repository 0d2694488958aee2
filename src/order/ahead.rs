//! Datasets that prefetch samples.

use crate::{
    fault::discard,
    vocabulary::{BatchKey, Place, Stage},
};
use std::{any::Any, time::Duration};

/// A dataset that can fetch remote samples before workers request them. The option
/// [`reads_ahead`](crate::PinnedDataLoaderBuilder::reads_ahead) gives it the order of each epoch.
///
/// ```
/// use burn_pinned::order::{Guard, ReadAhead};
///
/// struct Told;
/// impl ReadAhead for Told {
///     fn begin(&self, order: Box<dyn Iterator<Item = usize> + Send>) -> Guard {
///         let first: Vec<usize> = order.take(8).collect(); // and request these from a server
///         Guard::new(first)
///     }
/// }
/// ```
///
/// It changes only when bytes arrive: the samples of an epoch do not depend on it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot fetch samples ahead",
    label = "this dataset does not implement `ReadAhead`",
    note = "give `reads_ahead` the rows inside your dataset (`data::Rows`), or implement `ReadAhead` for it"
)]
pub trait ReadAhead: Send + Sync {
    /// Starts to fetch these samples, in this order, and returns at once. The iterator may be long or endless. Skip indices beyond the
    /// dataset: they belong to other datasets. Runs in `iter()`; the guard is dropped at the end of the epoch.
    ///
    /// If it panics, the epoch does not begin, and `next()` returns the error.
    fn begin(&self, order: Box<dyn Iterator<Item = usize> + Send>) -> Guard;

    /// The total time in which requests waited because a busy server asked them to. The loader's statistics show it. Default: zero.
    fn asked_to_wait(&self) -> Duration {
        Duration::ZERO
    }
}

/// Keeps the prefetching of an epoch running. Dropping it ends the prefetching. If dropping the value inside panics,
/// the panic is logged.
#[derive(derive_more::Debug)]
#[debug("Guard")]
pub struct Guard {
    held: Option<Box<dyn Any + Send>>,
}

impl Guard {
    /// Makes a guard from a value that ends the prefetching when dropped.
    pub fn new(held: impl Send + 'static) -> Self {
        Self { held: Some(Box::new(held)) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        discard(Place::batch(Stage::Read, BatchKey::NONE), self.held.take());
    }
}
