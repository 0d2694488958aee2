//! Image files become pixels.

mod chw;
mod colours;
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
mod walk;

pub use chw::write_chw;
pub(crate) use chw::write_planes;
pub(crate) use file::{Header, Rgb16, check_headers, decode_deep, decode_part, decode_stored, read};
pub use file::{Limits, decode, open};
pub(crate) use jpeg::JpegHeader;
pub(crate) use mask::{Numbers, mask_size, numbers};
pub(crate) use walk::Walk;
