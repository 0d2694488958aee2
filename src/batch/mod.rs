//! What a batch is made of: samples, rows, tensors; and the two ways of making one.

mod batcher_source;
mod closures;
mod collate;
mod collate_source;
mod fill;
mod filled_rows;
mod next;
mod raw;
mod row;
#[cfg(feature = "vision")]
mod row_image;
mod rows_source;
mod samples;
mod source;
mod write;

pub(crate) use batcher_source::ItemsSource;
pub use closures::collate;
pub use collate::Collate;
pub(crate) use filled_rows::upload_rows;
pub(crate) use next::{Finished, Next, Queue, Queues, Ready, ToFinish, ToPin, ToSend};
pub(crate) use raw::BatchPlace;
pub use raw::RawBatch;
pub use row::RowMut;
pub(crate) use rows_source::{RowsSource, group};
pub(crate) use samples::{BatchPlan, Many, Samples};
#[cfg(test)]
pub(crate) use source::Done;
pub(crate) use source::{Outcome, Source, Task};
pub(crate) use write::{Rows, write_rows};
