//! The types that a user has: the builder and its options, the loader, its epochs, and its saved state. `src/README.md`
//! follows a batch from here on.

mod any_dataset;
mod batches;
mod build;
mod builder;
mod burn_methods;
#[cfg(feature = "metrics")]
mod checkpointer;
mod data_loader;
mod dataset;
mod dataset_ext;
mod iter;
mod kept;
mod machine;
#[cfg(feature = "metrics")]
mod metrics;
mod options;
mod pinned_batcher;
mod plan;
mod scattered;
mod state;
mod stream;
mod unread_errors;

pub use any_dataset::AnyDataset;
pub use builder::PinnedDataLoaderBuilder;
#[cfg(feature = "metrics")]
pub use checkpointer::LoaderCheckpointer;
pub use data_loader::PinnedDataLoader;
pub use dataset::dataset;
pub use dataset_ext::DatasetExt;
#[cfg(feature = "metrics")]
pub use metrics::LoaderMetric;
pub use pinned_batcher::PinnedBatcher;
pub use state::LoaderState;
