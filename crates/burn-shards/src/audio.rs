//! Sounds: their files, and what is made of them.

mod batch;
mod change;
mod codec;
mod fault;
mod mask;
mod mel;
mod resample;
mod sound;
#[cfg(test)]
mod tests;
mod vorbis;
mod wav;

pub use batch::BatchMelSpectrogram;
pub use change::{AddGaussianNoise, Gain, Shift};
pub use mask::{FrequencyMasking, TimeMasking};
pub use mel::MelSpectrogram;
pub use sound::Audio;
