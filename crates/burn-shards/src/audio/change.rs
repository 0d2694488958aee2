//! Random changes of sounds.

use super::sound::Audio;
use crate::error::DataError;
use burn_augment::{
    Augment, BoxError, KeyedRng,
    rand::{RngExt, distr::Uniform},
};
use std::f64::consts::TAU;

impl AsMut<Audio> for Audio {
    fn as_mut(&mut self) -> &mut Audio {
        self
    }
}

impl<L> AsMut<Audio> for (Audio, L) {
    fn as_mut(&mut self) -> &mut Audio {
        &mut self.0
    }
}

/// Decodes the sound of a sample, and changes its samples.
fn changed<S: AsMut<Audio>>(mut sample: S, change: impl FnOnce(&mut [f32])) -> Result<S, BoxError> {
    let audio = sample.as_mut();
    let mut samples = audio.samples()?.into_owned();
    change(&mut samples);
    *audio = audio.with(samples, audio.channels(), audio.rate());
    Ok(sample)
}

fn bounds(option: &'static str, min: f64, max: f64) -> Result<Uniform<f64>, DataError> {
    let wrong =
        |error| DataError::option(option, format!("from {min} to {max}: {error}"), "give the lower number first");
    Uniform::new_inclusive(min, max).map_err(wrong)
}

/// Makes a sound louder or quieter: audiomentations' `Gain`. The change in decibels is uniform between two bounds. Samples are not
/// clipped.
///
/// ```
/// use burn_augment::{Augment, KeyedRng, augment::RandomApply};
/// use burn_shards::{AddGaussianNoise, Audio, Gain, Shift};
///
/// struct Speech {
///     sound: Audio,
///     class: usize,
/// }
///
/// impl AsMut<Audio> for Speech {
///     fn as_mut(&mut self) -> &mut Audio {
///         &mut self.sound
///     }
/// }
///
/// let noise = RandomApply::new(0.5, AddGaussianNoise::by_snr(5.0, 40.0)?)?; // in half of the samples
/// let train = (Gain::new(-12.0, 12.0)?, noise, Shift::new(-0.5, 0.5)?);
/// let sample = Speech { sound: Audio::new(vec![0.5; 16_000], 1, 16_000)?, class: 3 };
/// let changed = train.apply(sample, &mut KeyedRng::for_sample(42, 0, 7))?; // seed, epoch, index of the sample
/// assert_eq!((changed.sound.frames(), changed.class), (16_000, 3));
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// Like [`AddGaussianNoise`] and [`Shift`] it is an [`Augment`] of all samples that implement `AsMut<Audio>`: an [`Audio`], a pair
/// `(Audio, label)`, or a type of yours as above. The calling thread decodes the sound, so crop it before. The samples are the same on
/// each machine. The only errors are those of [`Audio::samples`].
#[derive(Debug, Clone, Copy)]
pub struct Gain(Uniform<f64>);

impl Gain {
    /// Changes by `min_db` to `max_db` decibels. audiomentations' defaults are -12 and 12.
    ///
    /// # Errors
    /// Unless both are finite, and `min_db <= max_db`.
    pub fn new(min_db: f64, max_db: f64) -> Result<Self, DataError> {
        bounds("Gain::new", min_db, max_db).map(Self)
    }
}

impl<S: AsMut<Audio>> Augment<S> for Gain {
    fn apply(&self, sample: S, rng: &mut KeyedRng) -> Result<S, BoxError> {
        let factor = factor(rng.sample(self.0));
        changed(sample, |samples| samples.iter_mut().for_each(|value| *value = (f64::from(*value) * factor) as f32))
    }
}

fn factor(decibels: f64) -> f64 {
    libm::pow(10.0, decibels / 20.0)
}

/// Adds normally distributed noise to each sample of a sound. It changes the same types as [`Gain`], which has an example.
#[derive(Debug, Clone, Copy)]
pub struct AddGaussianNoise {
    bounds: Uniform<f64>,
    by_snr: bool,
}

impl AddGaussianNoise {
    /// The standard deviation of the noise is uniform between two amplitudes: audiomentations' `AddGaussianNoise`, whose defaults are
    /// 0.001 and 0.015.
    ///
    /// # Errors
    /// Unless both are finite, and `min_amplitude <= max_amplitude`.
    pub fn new(min_amplitude: f64, max_amplitude: f64) -> Result<Self, DataError> {
        Ok(Self { bounds: bounds("AddGaussianNoise::new", min_amplitude, max_amplitude)?, by_snr: false })
    }

    /// The ratio of signal to noise, in decibels, is uniform between two bounds: audiomentations' `AddGaussianSNR`, whose defaults are
    /// 5 and 40. The signal is the root mean square of all samples, so silence gets no noise.
    ///
    /// # Errors
    /// Unless both are finite, and `min_snr_db <= max_snr_db`.
    pub fn by_snr(min_snr_db: f64, max_snr_db: f64) -> Result<Self, DataError> {
        Ok(Self { bounds: bounds("AddGaussianNoise::by_snr", min_snr_db, max_snr_db)?, by_snr: true })
    }
}

impl<S: AsMut<Audio>> Augment<S> for AddGaussianNoise {
    fn apply(&self, sample: S, rng: &mut KeyedRng) -> Result<S, BoxError> {
        let drawn = rng.sample(self.bounds);
        changed(sample, |samples| {
            let power: f64 = samples.iter().map(|value| f64::from(value * value)).sum();
            let signal = (power / samples.len().max(1) as f64).sqrt();
            let deviation = if self.by_snr { signal / factor(drawn) } else { drawn };
            // By Box and Muller: two numbers of a normal distribution from two uniform ones.
            for pair in samples.chunks_mut(2) {
                let radius = deviation * (-2.0 * libm::log(1.0 - rng.random::<f64>())).sqrt();
                let (sin, cos) = libm::sincos(TAU * rng.random::<f64>());
                pair.iter_mut().zip([cos, sin]).for_each(|(value, noise)| *value += (radius * noise) as f32);
            }
        })
    }
}

/// Moves a sound in time: audiomentations' `Shift`, without its fade. What leaves at one end enters at the other. It changes the same types
/// as [`Gain`], which has an example.
#[derive(Debug, Clone, Copy)]
pub struct Shift(Uniform<f64>);

impl Shift {
    /// Moves by `min` to `max` of the sound's length, uniformly, and rounded to whole frames. Above 0 is later. audiomentations' defaults
    /// are -0.5 and 0.5.
    ///
    /// # Errors
    /// Unless both are finite, and `min <= max`.
    pub fn new(min: f64, max: f64) -> Result<Self, DataError> {
        bounds("Shift::new", min, max).map(Self)
    }
}

impl<S: AsMut<Audio>> Augment<S> for Shift {
    fn apply(&self, mut sample: S, rng: &mut KeyedRng) -> Result<S, BoxError> {
        let (frames, channels) = (sample.as_mut().frames(), usize::from(sample.as_mut().channels()));
        let later = (rng.sample(self.0) * frames as f64).round().rem_euclid(frames.max(1) as f64) as usize;
        changed(sample, |samples| samples.rotate_right(later * channels))
    }
}
