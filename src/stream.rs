//! Data without an index, which is read from its begin to its end: pipes, servers, message queues, shards that are read once. A [`Stream`]
//! says how it is opened; [`build_stream`](crate::PinnedDataLoaderBuilder::build_stream) makes a loader of it.

mod feed;
mod lanes;
mod reader;
mod share;
mod source;

pub use feed::EmptyStream;
pub(crate) use feed::{BatchItems, BatchMarks, OpenStream, StreamOrigin};
pub(crate) use share::ShareMark;
pub use source::{SaveState, Stream, StreamError, StreamPlace};
