//! Mel spectrograms: how loud a sound is in bands of pitch, over time.

use super::{batch::BatchMelSpectrogram, sound::Audio};
use crate::{error::DataError, source::cell::Array};
use burn::tensor::Device;
use realfft::{RealFftPlanner, RealToComplex};
use std::{f64::consts::TAU, sync::Arc};

/// The mel spectrograms of sounds: torchaudio's `MelSpectrogram`, with the same numbers but for rounding.
///
/// ```
/// use burn_shards::{Audio, MelSpectrogram};
///
/// let mel = MelSpectrogram::new(16_000, 400, 160, 80)?; // 80 bands; a spectrum of 25 ms each 10 ms
/// let audio = Audio::new(vec![0.5; 16_000], 1, 16_000)?;
/// let decibels = mel.decibels(&audio)?; // f32
/// assert_eq!(decibels.shape(), [101, 80]); // time, bands
/// # Ok::<(), burn_shards::DataError>(())
/// ```
///
/// Make it once: it has the tables. Its methods run on the calling thread, such as a worker in `rows.map`, where a field
/// `#[sample(padded = [3000, 80], mask)] mel: Array<f32>` takes the result. Spectra are first, so that batches are padded in time; torchaudio
/// has `[bands, time]`.
///
/// Its window is that of Hann, and each spectrum is centred at its time; beyond its ends the sound is mirrored. Bands reach from 0 to half of
/// the rate, by the formula of HTK, and are not normalised. These are torchaudio's defaults.
#[derive(derive_more::Debug)]
pub struct MelSpectrogram {
    rate: u32,
    hop: usize,
    bands: usize,
    #[debug(skip)]
    window: Vec<f32>,
    /// How much each frequency of a spectrum counts in each band: the bands of a frequency lie together.
    #[debug(skip)]
    weights: Vec<f32>,
    #[debug(skip)]
    fft: Arc<dyn RealToComplex<f32>>,
}

impl MelSpectrogram {
    /// Makes spectra of `n_fft` frames each `hop_length` frames, in `n_mels` bands. torchaudio's defaults are `16_000, 400, 200, 128`.
    ///
    /// # Errors
    /// If a number is 0, or `n_fft` is not from 2 to 65,536, or `n_mels` is above 1,024.
    pub fn new(rate: u32, n_fft: usize, hop_length: usize, n_mels: usize) -> Result<Self, DataError> {
        if rate == 0 || hop_length == 0 || !(2..=1 << 16).contains(&n_fft) || !(1..=1024).contains(&n_mels) {
            let problem = format!("a rate of {rate}, {n_fft} frames each {hop_length}, {n_mels} bands");
            return Err(DataError::option("MelSpectrogram::new", problem, "give up to 65,536 frames and 1,024 bands"));
        }
        let window = (0..n_fft).map(|n| (0.5 - 0.5 * libm::cos(TAU * n as f64 / n_fft as f64)) as f32).collect();
        // The peaks of the bands, in Hz, between the lowest frequency and the highest.
        let (highest, places) = (f64::from(rate / 2), (n_mels + 1) as f64);
        let most = 2595.0 * libm::log10(1.0 + highest / 700.0);
        let hertz = |place: usize| 700.0 * (libm::pow(10.0, most * place as f64 / places / 2595.0) - 1.0);
        let peaks: Vec<f64> = (0..n_mels + 2).map(hertz).collect();
        let weight = |(bin, peaks): (usize, &[f64])| {
            let hertz = highest * bin as f64 / (n_fft / 2) as f64;
            let (up, down) = ((hertz - peaks[0]) / (peaks[1] - peaks[0]), (peaks[2] - hertz) / (peaks[2] - peaks[1]));
            up.min(down).max(0.0) as f32
        };
        let weights =
            (0..=n_fft / 2).flat_map(|bin| peaks.windows(3).map(move |peaks| (bin, peaks))).map(weight).collect();
        let fft = RealFftPlanner::new().plan_fft_forward(n_fft);
        Ok(Self { rate, hop: hop_length, bands: n_mels, window, weights, fft })
    }

    /// The power in each band, `[time, bands]`: a spectrum for each `hop_length` frames, and one more.
    ///
    /// # Errors
    /// If the sound has another rate, more than one channel, or no more than half of `n_fft` frames; and as for [`Audio::samples`].
    pub fn power(&self, audio: &Audio) -> Result<Array<f32>, DataError> {
        let (size, samples) = (self.window.len(), audio.samples()?);
        let half = size / 2;
        if (audio.channels(), audio.rate()) != (1, self.rate) || samples.len() <= half {
            let problem = format!("{} samples of {} channels at {} Hz", samples.len(), audio.channels(), audio.rate());
            let advice = format!("give more than {half} samples of one channel at {} Hz", self.rate);
            return Err(DataError::option("MelSpectrogram", problem, advice));
        }
        let last = samples.len() - 1;
        let (mut frame, mut spectrum) = (self.fft.make_input_vec(), self.fft.make_output_vec());
        let count = (samples.len() + 2 * half - size) / self.hop + 1;
        let mut power = vec![0.0; count * self.bands];
        for (time, power) in power.chunks_exact_mut(self.bands).enumerate() {
            for (n, (value, window)) in frame.iter_mut().zip(&self.window).enumerate() {
                let place = (time * self.hop + n).abs_diff(half);
                *value = window * samples[if place > last { 2 * last - place } else { place }];
            }
            let done = self.fft.process(&mut frame, &mut spectrum);
            done.map_err(|error| DataError::option("MelSpectrogram", error.to_string(), "report it"))?;
            for (value, weights) in spectrum.iter().zip(self.weights.chunks_exact(self.bands)) {
                let value = value.norm_sqr();
                power.iter_mut().zip(weights).for_each(|(power, weight)| *power += weight * value);
            }
        }
        Array::new([count, self.bands], power)
    }

    /// [`power`](Self::power) in decibels, as by torchaudio's `AmplitudeToDB` with its defaults: `10 * log10(power)`, at least -100.
    ///
    /// # Errors
    /// As for [`power`](Self::power).
    pub fn decibels(&self, audio: &Audio) -> Result<Array<f32>, DataError> {
        let power = self.power(audio)?;
        let decibels =
            power.data().iter().map(|power| 10.0 * libm::log10f(power.clamp(1e-10, f32::INFINITY))).collect();
        Array::new(power.shape(), decibels)
    }
    /// The same for whole batches, on a device: by products of matrices.
    pub fn to_device(&self, device: &Device) -> BatchMelSpectrogram {
        let (size, frequencies) = (self.window.len(), self.window.len() / 2 + 1);
        let turn = |n: usize, frequency: usize| libm::sincos(TAU * (n * frequency % size) as f64 / size as f64);
        let row = |(n, window): (usize, &f32)| {
            let window = f64::from(*window);
            let cosines = (0..frequencies).map(move |frequency| (window * turn(n, frequency).1) as f32);
            cosines.chain((0..frequencies).map(move |frequency| (window * turn(n, frequency).0) as f32))
        };
        let waves = self.window.iter().enumerate().flat_map(row).collect();
        BatchMelSpectrogram::new(waves, self.weights.repeat(2), self.bands, self.hop, device)
    }
}
