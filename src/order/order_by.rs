//! The order of the epochs of a loader: by a sampler, or by a batch sampler.

use super::sampler::{BatchSampler, Positions, Sampler};
use std::{ops::Range, sync::Arc};

/// A [`Sampler`] or a [`BatchSampler`], as [`order`](crate::PinnedDataLoaderBuilder::order) takes it.
///
/// `Kind` tells the compiler which of the two a type is. You never write it. Both kinds implement this trait; do not
/// implement it yourself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `Sampler` and no `BatchSampler`",
    label = "this must be a sampler, such as `RandomSampler::new(seed)`",
    note = "for a shuffle alone, write `shuffle(seed)`"
)]
pub trait IntoOrder<Kind: ?Sized> {
    /// Returns the order.
    fn into_order(self) -> OrderBy;
}

/// The sampler that orders epochs. [`IntoOrder`] makes it.
#[derive(Clone, derive_more::Debug)]
#[debug("{_0:?}")]
pub struct OrderBy(pub(crate) AnySampler);

/// A sampler of one of the two kinds.
#[derive(Clone, derive_more::Debug)]
pub(crate) enum AnySampler {
    /// Samples in order, which the loader cuts into batches.
    #[debug("{_0:?}")]
    Samples(Arc<dyn Sampler>),
    /// Batches as the batch sampler makes them.
    #[debug("{_0:?}")]
    Batches(Arc<dyn BatchSampler>),
}

impl AnySampler {
    /// The number of units of an epoch for all processes together: samples, or batches of a batch sampler.
    pub(super) fn units(&self, dataset_len: usize, epoch: usize) -> usize {
        match self {
            Self::Samples(sampler) => sampler.len(dataset_len),
            Self::Batches(sampler) => sampler.batches(dataset_len, epoch).len,
        }
    }

    /// The sampler of some of the units, and whether it orders their samples on their own. Otherwise it has these positions of the
    /// sequence, which must be the same in each epoch.
    pub(super) fn part(&self, dataset_len: usize, units: Range<usize>) -> (Self, bool) {
        match self {
            Self::Samples(sampler) => match sampler.part(dataset_len, units.clone()) {
                Some(members) => (Self::Samples(members), true),
                None => (Self::Samples(Arc::new(Positions::new(Arc::clone(sampler), units))), false),
            },
            Self::Batches(sampler) => (Self::Batches(Arc::new(Positions::new(Arc::clone(sampler), units))), false),
        }
    }
}

impl<S: Sampler> IntoOrder<dyn Sampler> for S {
    fn into_order(self) -> OrderBy {
        OrderBy(AnySampler::Samples(Arc::new(self)))
    }
}

impl<B: BatchSampler> IntoOrder<dyn BatchSampler> for B {
    fn into_order(self) -> OrderBy {
        OrderBy(AnySampler::Batches(Arc::new(self)))
    }
}
