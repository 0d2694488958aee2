//! Which samples an epoch has, and in which order. A [`Sampler`] orders single samples, and the loader cuts its order
//! into batches. A [`BatchSampler`] also decides which samples share a batch. The option
//! [`order`](crate::PinnedDataLoaderBuilder::order) takes either. [`SequentialSampler`] and [`RandomSampler`] give each
//! sample once, [`WeightedSampler`] draws by weight, [`LiveWeights`] by weights that the training changes,
//! [`ClassBalancedSampler`] balances classes, [`MixSampler`] mixes several datasets, [`BlockShuffle`] shuffles data that
//! is read in blocks, [`LengthBucketSampler`] makes batches of samples of similar length, [`PKSampler`] makes batches of
//! a few labels, and [`PackingSampler`] makes batches of rows that are filled with documents.
//! [`Distributed`] gives each of several processes its share of the order.

mod ahead;
mod distributed;
mod draw;
mod feed;
mod launcher;
mod order_by;
mod progress;
mod sampler;
mod schedule;

pub use ahead::{Guard, ReadAhead};
pub use distributed::Distributed;
pub(crate) use draw::VERSION;
pub(crate) use feed::Feed;
pub use launcher::Launched;
pub(crate) use order_by::AnySampler;
pub use order_by::{IntoOrder, OrderBy};
pub(crate) use progress::{EpochProgress, Position};
pub use sampler::{
    BatchSampler, BlockShuffle, Blocks, ClassBalancedSampler, EpochBatches, FixedBatchSampler, LengthBucketSampler,
    LiveWeights, MixPart, MixSampler, PKSampler, PackingSampler, RandomSampler, RandomWithReplacementSampler,
    RepeatSampler, Sampler, SequentialSampler, SubsetSampler, TooLong, WeightedSampler,
    WeightedWithoutReplacementSampler,
};
pub(crate) use sampler::{BestFit, StepsSampler};
/// For `shards simulate`. It may change in any version.
#[cfg(feature = "remote")]
#[doc(hidden)]
pub use schedule::samples_of;
pub(crate) use schedule::{Schedule, part};
