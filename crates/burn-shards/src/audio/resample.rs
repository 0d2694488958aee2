//! Other rates and numbers of channels.

use super::sound::Audio;
use crate::error::{BoxError, DataError};
use rubato::{Fft, FixedSync, Resampler, audioadapter_buffers::direct::InterleavedSlice};

/// The highest rate: the memory of a filter grows with the rates.
const MOST: u32 = 1 << 20;
/// About the frames of a block of the filter.
const BLOCK: u32 = 1024;

impl Audio {
    /// Decodes it, and takes the mean of the channels.
    ///
    /// # Errors
    /// As for [`samples`](Self::samples).
    pub fn mono(self) -> Result<Self, DataError> {
        let channels = usize::from(self.channels());
        if channels == 1 {
            return Ok(self);
        }
        let mean = |frame: &[f32]| frame.iter().sum::<f32>() / channels as f32;
        let samples = self.samples()?.chunks_exact(channels).map(mean).collect();
        Ok(self.with(samples, 1, self.rate()))
    }

    /// Decodes it, and computes it at another rate, in frames per second: `frames * rate / self.rate()` frames, rounded up. The crate
    /// rubato does it by Fourier transforms, with a filter that lets through frequencies below half of the lower rate. The sound has its
    /// time: it is not delayed.
    ///
    /// A sound of this rate is returned as it is, not decoded.
    ///
    /// # Errors
    /// If one of the rates is 0 or above 1,048,576, or the result would be longer than the [`limit`](Self::limit); and as for
    /// [`samples`](Self::samples).
    pub fn resample(self, rate: u32) -> Result<Self, DataError> {
        let (from, channels, frames) = (self.rate(), self.channels(), self.frames());
        if rate == from {
            return Ok(self);
        }
        let wrong = |problem: BoxError| {
            let problem = format!("{frames} frames from {from} to {rate} Hz: {problem}");
            DataError::option("Audio::resample", problem, format!("give a rate of 1 to {MOST} Hz, or crop the sound"))
        };
        let bytes = frames as f64 * 4.0 * f64::from(channels) * f64::from(rate) / f64::from(from);
        if rate == 0 || rate.max(from) > MOST || bytes > self.limit as f64 {
            return Err(wrong("it is out of the limits".into()));
        }
        if frames == 0 {
            return Ok(self.with(Vec::new(), channels, rate));
        }
        // The delay of its filter is half a block. With an even number of both rates' periods in a block it is whole frames.
        let block = BLOCK.next_multiple_of(2 * from / gcd(from, rate)) as usize;
        let samples = self.samples()?;
        let made = || -> Result<Vec<f32>, BoxError> {
            let mut fft = Fft::new(from as usize, rate as usize, block, channels.into(), FixedSync::Both)?;
            let input = InterleavedSlice::new(&samples, channels.into(), frames)?;
            Ok(fft.process_all(&input, frames, None)?.take_data())
        };
        Ok(self.with(made().map_err(wrong)?, channels, rate))
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
