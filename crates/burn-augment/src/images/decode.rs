//! From image files to pixels.

mod chw;
mod file;
mod format;
mod gif;
mod jpeg;
mod mask;
mod orientation;
mod png;
mod riff;
mod scans;
mod segments;
#[cfg(feature = "turbo")]
mod turbo;

pub use chw::write_chw;
pub(crate) use chw::write_planes;
pub(crate) use file::{EncodedFile, decode_stored, read};
pub use file::{Limits, decode, open};
pub(crate) use mask::{numbers, read_mask};
