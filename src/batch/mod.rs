//! What a batch is made of: samples, rows, tensors; and the two ways of making one.

mod batcher_source;
mod collate;
mod collate_source;
mod filled_rows;
mod raw;
mod row;
mod samples;
mod source;
mod tensors;
mod write;

pub(crate) use batcher_source::ItemsSource;
pub use collate::Collate;
pub(crate) use collate_source::{RowsSource, group};
pub(crate) use filled_rows::upload_rows;
pub(crate) use raw::BatchPlace;
pub use raw::RawBatch;
pub use row::RowMut;
pub(crate) use samples::{BatchPlan, Samples};
#[cfg(test)]
pub(crate) use source::Done;
pub(crate) use source::{Finished, Next, Ready, Source, Task, ToPin, ToSend};
pub use tensors::{MapTensors, TensorMapper};
pub(crate) use write::{Rows, write_rows};
