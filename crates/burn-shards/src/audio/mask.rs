//! Random masks of spectrograms.

use crate::{error::DataError, source::cell::Array};
use burn_augment::{Augment, BoxError, KeyedRng, rand::RngExt};

impl AsMut<Array<f32>> for Array<f32> {
    fn as_mut(&mut self) -> &mut Array<f32> {
        self
    }
}

impl<L> AsMut<Array<f32>> for (Array<f32>, L) {
    fn as_mut(&mut self) -> &mut Array<f32> {
        &mut self.0
    }
}

/// Masks spectra that follow each other: torchaudio's `TimeMasking`, for spectrograms of `[time, bands]`.
///
/// ```
/// use burn_augment::{Augment, KeyedRng};
/// use burn_shards::{Array, FrequencyMasking, TimeMasking};
///
/// let spec_augment = (TimeMasking::new(40).p(0.2)?, TimeMasking::new(40).p(0.2)?, FrequencyMasking::new(27));
/// let spectrogram = Array::new([101, 80], vec![1.0f32; 101 * 80])?;
/// let masked = spec_augment.apply(spectrogram, &mut KeyedRng::for_sample(42, 0, 7))?; // seed, epoch, index of the sample
/// assert!(masked.data().iter().all(|value| [0.0, 1.0].contains(value)));
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// The length is uniform from 0 up to, but without, the lesser of `time_mask_param` and the part [`p`](Self::p) of all spectra; the start is
/// uniform too, and both are rounded down. So the mask may be empty. torchaudio with a `p` of 1 does not limit the length by the spectra.
///
/// Like [`FrequencyMasking`] it is an [`Augment`] of all samples that implement `AsMut<Array<f32>>`: an [`Array`], a pair
/// `(Array<f32>, label)`, or a type of yours. An array that has other than two dimensions is an error.
#[derive(Debug, Clone, Copy)]
pub struct TimeMasking {
    most: usize,
    p: f64,
    value: f32,
}

impl TimeMasking {
    /// Masks less than `time_mask_param` spectra.
    pub fn new(time_mask_param: usize) -> Self {
        Self { most: time_mask_param, p: 1.0, value: 0.0 }
    }

    /// Sets the greatest part of all spectra that may be masked. Default: 1.
    ///
    /// # Errors
    /// If `p` is not from 0 to 1.
    pub fn p(mut self, p: f64) -> Result<Self, DataError> {
        if !(0.0..=1.0).contains(&p) {
            return Err(DataError::option("TimeMasking::p", p.to_string(), "give a number from 0 to 1"));
        }
        self.p = p;
        Ok(self)
    }

    /// Sets the value of what is masked. Default: 0. In decibels, -100 is silence.
    pub fn value(mut self, value: f32) -> Self {
        self.value = value;
        self
    }
}

impl<S: AsMut<Array<f32>>> Augment<S> for TimeMasking {
    fn apply(&self, sample: S, rng: &mut KeyedRng) -> Result<S, BoxError> {
        masked(sample, 0, *self, rng)
    }
}

/// Masks bands that lie together: torchaudio's `FrequencyMasking`, for spectrograms of `[time, bands]`. Size and place of the mask are
/// drawn as by [`TimeMasking`], which has an example.
#[derive(Debug, Clone, Copy)]
pub struct FrequencyMasking(TimeMasking);

impl FrequencyMasking {
    /// Masks less than `freq_mask_param` bands.
    pub fn new(freq_mask_param: usize) -> Self {
        Self(TimeMasking::new(freq_mask_param))
    }

    /// Sets the value of what is masked. Default: 0. In decibels, -100 is silence.
    pub fn value(self, value: f32) -> Self {
        Self(self.0.value(value))
    }
}

impl<S: AsMut<Array<f32>>> Augment<S> for FrequencyMasking {
    fn apply(&self, sample: S, rng: &mut KeyedRng) -> Result<S, BoxError> {
        masked(sample, 1, self.0, rng)
    }
}

fn masked<S: AsMut<Array<f32>>>(
    mut sample: S,
    axis: usize,
    by: TimeMasking,
    rng: &mut KeyedRng,
) -> Result<S, BoxError> {
    let array = sample.as_mut();
    let &[time, bands] = array.shape() else {
        let problem = format!("an array of the shape {:?}", array.shape());
        return Err(DataError::option("TimeMasking", problem, "give a spectrogram of [time, bands]").into());
    };
    let size = [time, bands][axis] as f64;
    let length = rng.random::<f64>() * (by.most as f64).min((size * by.p).floor());
    let start = (rng.random::<f64>() * (size - length)) as usize;
    let mask = start..start + length as usize;
    let is_masked = |at: usize| mask.contains(&[at / bands, at % bands][axis]);
    let data =
        array.data().iter().enumerate().map(|(at, value)| if is_masked(at) { by.value } else { *value }).collect();
    *array = Array::new([time, bands], data)?;
    Ok(sample)
}
