//! Other rates and numbers of channels.

use super::sound::Audio;
use crate::error::{BoxError, DataError};
use rubato::{Fft, FixedSync, Resampler, audioadapter_buffers::direct::InterleavedSlice};

/// The highest rate: the memory of a filter grows with the rates.
const MOST: u32 = 1 << 20;
/// About the frames of a block of the filter, at the lower rate.
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
    /// If one of the rates is 0 or above 1,048,576, or the result or the filter would take more bytes than the [`limit`](Self::limit). The
    /// filter of rates without a common divisor is large. Also as for [`samples`](Self::samples).
    pub fn resample(self, rate: u32) -> Result<Self, DataError> {
        let (from, channels, frames) = (self.rate(), self.channels(), self.frames());
        if rate == from {
            return Ok(self);
        }
        let wrong = |problem: BoxError| {
            let problem = format!("{frames} frames from {from} to {rate} Hz: {problem}");
            DataError::option("Audio::resample", problem, format!("give a rate of 1 to {MOST} Hz, or crop the sound"))
        };
        if rate == 0 || rate.max(from) > MOST {
            return Err(wrong("it is out of the limits".into()));
        }
        // The delay of its filter is half a block. With an even number of both rates' periods in a block it is whole frames.
        let block = u64::from(BLOCK) * u64::from(from / rate).max(1);
        let block = block.next_multiple_of(u64::from(2 * from / gcd(from, rate))) as usize;
        let made = |frames: usize| (frames as u128 * u128::from(rate)).div_ceil(from.into()) * u128::from(channels);
        // The filter has blocks of complex numbers, for both rates.
        let (filter, length) = (block as u128 * u128::from(channels) + made(block), made(frames));
        if filter * 16 > self.limit as u128 || length * 4 > self.limit as u128 {
            return Err(wrong("it is out of the limits".into()));
        }
        if frames == 0 {
            return Ok(self.with(Vec::new(), channels, rate));
        }
        let samples = self.samples()?;
        let compute = || -> Result<Vec<f32>, BoxError> {
            let mut fft = Fft::new(from as usize, rate as usize, block, channels.into(), FixedSync::Both)?;
            let input = InterleavedSlice::new(&samples, channels.into(), frames)?;
            let mut samples = fft.process_all(&input, frames, None)?.take_data();
            samples.truncate(length as usize); // its own length is computed in floats
            Ok(samples)
        };
        Ok(self.with(compute().map_err(wrong)?, channels, rate))
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
