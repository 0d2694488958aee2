//! The timeline: what was recorded, as a trace.

mod record;
mod trace;

pub(crate) use record::{Lane, Recorder};
pub use trace::Timeline;
