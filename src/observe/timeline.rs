//! The timeline: what was recorded, as a picture and as a trace.

mod bars;
mod record;
mod svg;
mod trace;

pub use bars::Timeline;
pub(crate) use record::{Lane, Recorder};
