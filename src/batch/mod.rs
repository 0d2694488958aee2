//! What a batch is made of: samples, rows, tensors; and the two ways of making one.

mod batcher_source;
mod collate;
mod collate_source;
mod raw;
mod row;
mod samples;
mod source;
mod tensors;

pub(crate) use batcher_source::ItemsSource;
pub use collate::Collate;
pub(crate) use collate_source::{Rows, RowsSource, group, upload_rows, write_rows};
pub(crate) use raw::BatchPlace;
pub use raw::RawBatch;
pub use row::RowMut;
pub(crate) use samples::{BatchPlan, Samples};
#[cfg(test)]
pub(crate) use source::Done;
pub(crate) use source::{Filled, Outcome, Ready, Source, Task};
pub use tensors::{MapTensors, TensorMapper};
