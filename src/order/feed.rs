//! The batches of an epoch as a sampler orders them.

use crate::{
    fault::{BoxError, Error, discard, guard},
    vocabulary::{Place, Stage},
};
use std::{
    any::Any,
    iter, mem,
    sync::{Arc, atomic::AtomicBool},
};

/// The samples of a batch: their indices and, of a stream, the items.
pub(crate) struct FeedBatch {
    pub(crate) indices: Vec<usize>,
    pub(crate) items: Option<Arc<dyn Any + Send + Sync>>,
}

/// Gives the items of batches in order, for samples that no index leads to.
pub(crate) trait ItemFeed: Send {
    /// Waits for the next `count` items, or as many as are left. Returns `None` if none is left.
    fn take(&mut self, count: usize, place: Place, unwanted: &AtomicBool) -> Result<Option<FeedBatch>, Error>;
}

/// The remaining batches of an epoch.
pub(crate) struct Feed {
    pub(super) batches: Box<dyn Iterator<Item = Vec<usize>> + Send>,
    /// Whether the units are samples. Otherwise they are batches.
    pub(super) by_samples: bool,
    /// Units per batch.
    pub(super) batch: usize,
    /// The most samples that a batch may have.
    pub(super) max: usize,
    /// The number of units that the sampler promised.
    pub(super) promised: usize,
    /// The number of units that were requested.
    pub(super) asked: usize,
    /// The number of units that the sampler gave.
    pub(super) given: usize,
    /// The position of this order's first unit in the epoch's global order.
    pub(super) first: usize,
    /// The distance from one unit to the next in the global order.
    pub(super) world: usize,
    pub(super) repeats: bool,
    /// The items of a stream, in place of the samples that the indices name.
    pub(crate) items: Option<Box<dyn ItemFeed>>,
}

impl Feed {
    /// The samples of all batches, in order.
    pub(crate) fn samples(self) -> Box<dyn Iterator<Item = usize> + Send> {
        Box::new(self.batches.take(self.promised).flatten()) // each batch has at least one unit
    }

    /// The position of the next batch's first unit in the epoch's global order.
    pub(crate) fn position(&self) -> usize {
        self.first.saturating_add(self.asked.saturating_mul(self.world))
    }

    /// If an index may occur more than once: the number of the next batch's first sample, and the step from each sample to the next. No two
    /// samples of the epoch have the same number.
    pub(crate) fn occurrences(&self) -> Option<(usize, usize)> {
        let position = self.position();
        let numbers = if self.by_samples { (position, self.world) } else { (position.wrapping_mul(self.max), 1) };
        self.repeats.then_some(numbers)
    }

    /// The next batch. `None` if a stream has ended. Waits for the items of a stream, until they are unwanted.
    pub(crate) fn take(&mut self, place: Place, unwanted: &AtomicBool) -> Result<Option<FeedBatch>, Error> {
        let taken = guard(place, || Ok::<_, BoxError>(self.batches.next().unwrap_or_default()));
        self.asked += self.batch.min(self.promised - self.asked);
        if taken.is_err() {
            // The position of the sampler is unknown now.
            discard(place, mem::replace(&mut self.batches, Box::new(iter::empty())));
        }
        let indices = taken?;
        self.given += if self.by_samples { indices.len() } else { usize::from(!indices.is_empty()) };
        if indices.len() > self.max {
            return Err(Error::LargeBatch { place, got: indices.len(), max: self.max });
        }
        if self.given < self.asked {
            return Err(Error::SamplerEnded { place, got: self.given, promised: self.promised });
        }
        match &mut self.items {
            Some(items) => items.take(indices.len(), Place { stage: Stage::Stream, ..place }, unwanted),
            None => Ok(Some(FeedBatch { indices, items: None })),
        }
    }
}
