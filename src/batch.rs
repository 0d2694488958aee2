//! Batches: the samples, rows and tensors that they are made of, and the two ways of making one.

mod closures;
mod collate;
mod columns;
#[doc(hidden)]
pub mod derived;
mod fill;
mod filled_items;
mod filled_rows;
mod items_source;
mod items_task;
mod job;
mod next;
mod raw;
mod row;
#[cfg(feature = "vision")]
mod row_image;
#[cfg(feature = "vision")]
mod row_mask;
mod rows_source;
mod rows_task;
mod sample;
mod samples;
mod source;
mod way;
mod write;

pub use closures::collate;
pub use collate::Collate;
pub(crate) use filled_rows::upload_rows;
pub(crate) use next::{Delivery, Filled, Finished, Next, Queue, Queues, Ready};
pub use raw::RawBatch;
pub use row::RowMut;
pub(crate) use rows_source::Finish;
#[cfg(all(test, feature = "vision"))]
pub(crate) use rows_source::RowsSource;
pub use sample::{Sample, SampleCollate};
pub(crate) use samples::{BatchPlan, Many, Samples, end_waits_with};
pub(crate) use source::{Source, Task};
pub(crate) use way::Way;
pub(crate) use write::{ChunkRows, RowWriter};
