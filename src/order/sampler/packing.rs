//! Batches of rows that are filled with documents.

mod batches;
mod best_fit;
mod plan;
mod plan_file;
mod sampler;
#[cfg(test)]
mod tests;
mod too_long;
mod window;

pub(crate) use best_fit::BestFit;
pub use sampler::PackingSampler;
pub use too_long::TooLong;
