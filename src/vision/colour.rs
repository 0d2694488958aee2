//! Changes of colour.

mod adjust;
mod bytes;
mod jitter;
pub(crate) mod tone;

pub use adjust::Adjust;
pub use jitter::{ColorJitter, Grayscale, RandomGrayscale};
