//! The order of the epochs of a loader: by a sampler, or by a batch sampler.

use super::sampler::{BatchSampler, Sampler};
use std::sync::Arc;

/// A [`Sampler`] or a [`BatchSampler`], as [`order`](crate::PinnedDataLoaderBuilder::order) takes it.
///
/// `Kind` tells the compiler which of the two a type is. A caller never writes it. Both have this trait, and nothing
/// else needs it.
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
