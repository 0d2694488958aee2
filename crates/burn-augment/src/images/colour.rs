//! Changes of colour.

mod adjust;
mod blur;
mod bytes;
mod camera;
mod clahe;
mod distort;
mod jitter;
mod lab;
mod random;
pub(crate) mod tone;

pub use adjust::Adjust;
pub use blur::GaussianBlur;
pub(crate) use blur::blur;
pub use bytes::light;
pub use camera::{GaussianNoise, JPEG, RandomGamma};
pub use clahe::CLAHE;
pub use distort::RandomPhotometricDistort;
pub use jitter::{ColorJitter, Grayscale, RandomChannelPermutation};
pub use random::{
    RandomAdjustSharpness, RandomAutocontrast, RandomEqualize, RandomGrayscale, RandomInvert, RandomPosterize,
    RandomSolarize,
};
