//! Batches: their samples, rows and tensors, and the two ways to make one.

mod collate;
#[doc(hidden)]
pub mod derived;
mod fill;
mod items;
mod lifecycle;
mod raw;
mod row;
#[cfg(feature = "vision")]
mod row_image;
#[cfg(feature = "vision")]
mod row_mask;
mod rows;
mod sample;
mod samples;
mod visit;
mod way;

pub use collate::{Collate, collate};
pub(crate) use fill::{AnyCollate, ChunkRows};
#[cfg(test)]
pub(crate) use lifecycle::OpenBatch;
pub(crate) use lifecycle::{Batch, BatchState, Content, Queue, Source, Task};
pub use raw::RawBatch;
pub use row::RowMut;
#[cfg(all(test, feature = "vision"))]
pub(crate) use rows::RowsSource;
pub(crate) use rows::upload_rows;
pub use sample::{Sample, SampleCollate};
pub(crate) use samples::{BatchPlan, GetMany, GetOne, Samples};
pub(crate) use way::Way;
