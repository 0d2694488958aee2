//! Which samples an epoch has, and in which order.

mod by;
mod distributed;
mod draw;
mod feed;
mod progress;
mod sampler;
mod schedule;

pub(crate) use by::By;
pub use by::{IntoOrder, OrderBy};
pub use distributed::Distributed;
pub(crate) use feed::{BatchIndices, Feed, Occurrences};
pub(crate) use progress::{EpochProgress, Position};
pub use sampler::{
    BatchSampler, ClassBalancedSampler, EpochBatches, FixedBatchSampler, LengthBucketSampler, MixPart, MixSampler,
    RandomSampler, RandomWithReplacementSampler, RepeatSampler, Sampler, SequentialSampler, SubsetSampler,
    WeightedSampler, WeightedWithoutReplacementSampler,
};
pub(crate) use schedule::{EpochOrder, Sampling, Schedule};
