//! Batches of rows that are full of documents.

mod batches;
mod best_fit;
mod lengths;
mod plan;
mod plan_file;
mod sampler;
#[cfg(test)]
mod tests;
mod window;

#[cfg(feature = "data")]
pub(crate) use best_fit::BestFit;
pub use lengths::TooLong;
pub use sampler::PackingSampler;
