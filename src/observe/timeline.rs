//! The timeline: the recording, and its trace.

mod record;
mod trace;

pub(crate) use record::{Lane, Recorder};
pub use trace::Timeline;
