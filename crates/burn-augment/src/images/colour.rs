//! Changes of colour.

mod adjust;
mod blur;
mod bytes;
mod distort;
mod jitter;
mod random;
pub(crate) mod tone;

pub use adjust::Adjust;
pub use blur::GaussianBlur;
pub use bytes::light;
pub use distort::RandomPhotometricDistort;
pub use jitter::{ColorJitter, Grayscale};
pub use random::{
    RandomAdjustSharpness, RandomAutocontrast, RandomEqualize, RandomGrayscale, RandomInvert, RandomPosterize,
    RandomSolarize,
};
