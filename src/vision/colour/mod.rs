//! Changes of colour.

mod bytes;
mod jitter;
pub(crate) mod tone;

pub use jitter::{Adjust, ColorJitter, Grayscale, RandomGrayscale};
