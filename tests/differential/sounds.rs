//! Sounds: each sample of a file, how many its header tells, and a part of it.

use crate::manifest::Entry;
use burn_pinned::data::Audio;
use std::fs;

pub(crate) fn check(entry: &Entry) -> Result<(), String> {
    let right = fs::read(entry.right.as_ref().expect("samples")).expect("samples");
    let right: Vec<f32> = right.as_chunks().0.iter().map(|float| f32::from_le_bytes(*float)).collect();
    let audio = Audio::open(&entry.paths[0]).map_err(|error| error.to_string())?;
    let (channels, rate) = (audio.channels(), audio.rate());
    if (channels, rate) != (entry.channels, entry.rate) {
        return Err(format!("{channels} channels of {rate} Hz, not {} of {}", entry.channels, entry.rate));
    }
    let length = Audio::len_of(&entry.paths[0]).map_err(|error| error.to_string())?;
    let samples = audio.samples().map_err(|error| error.to_string())?;
    if (samples.len(), length) != (right.len(), right.len()) {
        return Err(format!("{} samples, {length} by the header, not {}", samples.len(), right.len()));
    }
    // Equal bits, or near enough where an encoding loses some.
    let is_near =
        |is: f32, right: f32| is.to_bits() == right.to_bits() || f64::from((is - right).abs()) < entry.limit.1;
    if let Some(at) = samples.iter().zip(&right).position(|(is, right)| !is_near(*is, *right)) {
        return Err(format!("sample {at} is {}, not {}", samples[at], right[at]));
    }
    let (start, end) = (audio.frames() / 3, audio.frames() * 2 / 3);
    let part = audio.clone().crop(start..end);
    let whole = &samples[start * usize::from(channels)..end * usize::from(channels)];
    let is_same = *part.samples().map_err(|error| error.to_string())? == *whole;
    is_same.then_some(()).ok_or_else(|| format!("frames {start} to {end} alone are not those of the whole"))
}
