//! Samplers: the orders of epochs. A sampler does not depend on threads, pools or devices.

mod balanced;
mod base;
mod batch;
mod block;
mod buckets;
mod classes;
mod live;
mod members;
mod mix;
mod packing;
mod pk;
mod positions;
mod random;
mod repeat;
mod sequential;
mod steps;
mod subset;
mod weighted;

pub use balanced::ClassBalancedSampler;
pub use base::Sampler;
pub(crate) use batch::in_batches;
pub use batch::{BatchSampler, EpochBatches, FixedBatchSampler};
pub use block::{BlockShuffle, Blocks};
pub use buckets::LengthBucketSampler;
pub use live::LiveWeights;
pub use mix::{MixPart, MixSampler};
pub(crate) use packing::BestFit;
pub use packing::{PackingSampler, TooLong};
pub use pk::PKSampler;
pub(crate) use positions::{Positions, check_same};
pub use random::{RandomSampler, RandomWithReplacementSampler};
pub use repeat::RepeatSampler;
pub use sequential::SequentialSampler;
pub(crate) use steps::StepsSampler;
pub use subset::SubsetSampler;
pub use weighted::{WeightedSampler, WeightedWithoutReplacementSampler};
