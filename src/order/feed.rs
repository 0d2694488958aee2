//! The batches of an epoch as a sampler orders them.

use crate::{
    fault::{BoxError, Error, discard, guard},
    vocabulary::Place,
};
use std::{iter, mem};

/// The units of an epoch.
pub(super) enum Units {
    Samples { indices: Box<dyn Iterator<Item = usize> + Send>, batch_size: usize },
    Batches { batches: Box<dyn Iterator<Item = Vec<usize>> + Send>, max: usize },
}

/// The batches of an epoch that are still to come.
pub(crate) struct Feed {
    pub(super) units: Units,
    /// Units that the sampler promised.
    pub(super) promised: usize,
    /// Units that were asked for.
    pub(super) asked: usize,
    /// Units that came.
    pub(super) given: usize,
    /// The position of this order's first unit in the epoch's global order.
    pub(super) first: usize,
    /// The distance from one unit to the next in the global order.
    pub(super) world: usize,
    pub(super) repeats: bool,
}

/// The samples of a batch, and where they stand in the epoch's global order.
#[derive(Debug)]
pub(crate) struct BatchIndices {
    pub(crate) indices: Vec<usize>,
    /// Numbers that tell samples of the same index apart, if an index may come more than once.
    pub(crate) occurrences: Option<Occurrences>,
}

/// Numbers of the samples of a batch. No other sample of the epoch has the same number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occurrences {
    first: usize,
    step: usize,
}

impl Occurrences {
    pub(crate) fn number(&self, row: usize) -> usize {
        self.first.wrapping_add(row.wrapping_mul(self.step))
    }
}

impl Feed {
    /// The samples of all batches, in order.
    pub(crate) fn samples(self) -> Box<dyn Iterator<Item = usize> + Send> {
        match self.units {
            Units::Samples { indices, .. } => Box::new(indices.take(self.promised)),
            Units::Batches { batches, .. } => Box::new(batches.take(self.promised).flatten()),
        }
    }

    /// The position of the next batch's first unit in the epoch's global order.
    pub(crate) fn position(&self) -> usize {
        self.first.saturating_add(self.asked.saturating_mul(self.world))
    }

    /// The next batch.
    pub(crate) fn take(&mut self, place: Place) -> Result<BatchIndices, Error> {
        let position = self.position();
        let (wanted, taken, occurrences) = match &mut self.units {
            Units::Samples { indices, batch_size } => {
                let wanted = (*batch_size).min(self.promised - self.asked);
                let taken = guard(place, || Ok::<Vec<usize>, BoxError>(indices.by_ref().take(wanted).collect()));
                (wanted, taken, Occurrences { first: position, step: self.world })
            }
            Units::Batches { batches, max } => {
                let taken = guard(place, || Ok::<_, BoxError>(batches.next().unwrap_or_default()));
                (1, taken, Occurrences { first: position.wrapping_mul(*max), step: 1 })
            }
        };
        self.asked += wanted;
        if taken.is_err() {
            let none = Units::Batches { batches: Box::new(iter::empty()), max: 0 };
            discard(place, mem::replace(&mut self.units, none)); // the position of the sampler is not known any more
        }
        let indices = taken?;
        self.given += match self.units {
            Units::Samples { .. } => indices.len(),
            Units::Batches { .. } => usize::from(!indices.is_empty()),
        };
        if let Units::Batches { max, .. } = self.units
            && indices.len() > max
        {
            return Err(Error::LargeBatch { place, got: indices.len(), max });
        }
        if self.given < self.asked {
            return Err(Error::SamplerEnded { place, got: self.given, promised: self.promised });
        }
        Ok(BatchIndices { indices, occurrences: self.repeats.then_some(occurrences) })
    }
}
