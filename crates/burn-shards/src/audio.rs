//! Sounds: their files, and what is made of them.

mod codec;
mod fault;
mod mel;
mod resample;
mod sound;
#[cfg(test)]
mod tests;
mod wav;

pub use mel::MelSpectrogram;
pub use sound::Audio;
