//! Image files become pixels.

mod chw;
mod file;
mod riff;

pub use chw::write_chw;
pub use file::{Limits, decode, open};
