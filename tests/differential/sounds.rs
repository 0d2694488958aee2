//! Sounds: each sample of a `.wav` file, and how many its header tells.

use crate::manifest::Entry;
use burn_pinned::data::Wave;
use std::fs;

pub(crate) fn check(entry: &Entry) -> Result<(), String> {
    let right = fs::read(entry.right.as_ref().expect("samples")).expect("samples");
    let right: Vec<f32> = right.as_chunks().0.iter().map(|float| f32::from_le_bytes(*float)).collect();
    let wave = Wave::open(&entry.paths[0]).map_err(|error| error.to_string())?;
    if (wave.channels, wave.rate) != (entry.channels, entry.rate) {
        return Err(format!(
            "{} channels of {} Hz, not {} of {}",
            wave.channels, wave.rate, entry.channels, entry.rate
        ));
    }
    let length = Wave::len_of(&entry.paths[0]).map_err(|error| error.to_string())?;
    if (wave.samples.len(), length) != (right.len(), right.len()) {
        return Err(format!("{} samples, {length} by the header, not {}", wave.samples.len(), right.len()));
    }
    match wave.samples.iter().zip(&right).position(|(is, right)| is.to_bits() != right.to_bits()) {
        None => Ok(()),
        Some(at) => Err(format!("sample {at} is {}, not {}", wave.samples[at], right[at])),
    }
}
