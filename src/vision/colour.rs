//! Changes of colour.

mod adjust;
mod blur;
mod bytes;
mod jitter;
mod random;
pub(crate) mod tone;

pub use adjust::Adjust;
pub use blur::GaussianBlur;
pub(crate) use bytes::light;
pub use jitter::{ColorJitter, Grayscale, RandomGrayscale};
pub use random::{
    RandomAdjustSharpness, RandomAutocontrast, RandomEqualize, RandomInvert, RandomPosterize, RandomSolarize,
};
