//! What a user holds: the builder and its options, the loader, its epochs, and where it stands.

mod batcher;
mod batches;
mod build;
mod builder;
mod data_loader;
mod frozen_len;
mod iter;
mod kept;
mod machine;
mod make;
#[cfg(feature = "metrics")]
mod metrics;
mod options;
mod plan;
#[cfg(feature = "data")]
mod scattered;
mod state;
mod unasked;

pub use batcher::PinnedBatcher;
pub use builder::PinnedDataLoaderBuilder;
pub use data_loader::PinnedDataLoader;
#[cfg(feature = "metrics")]
pub use metrics::LoaderMetric;
pub use state::LoaderState;
