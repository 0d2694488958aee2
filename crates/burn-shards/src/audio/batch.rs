//! Mel spectrograms of whole batches, on their device.

use crate::error::DataError;
use burn::tensor::{Device, Int, Tensor, TensorData, ops::PadMode};

/// The mel spectrograms of batches of sounds, on a device. [`MelSpectrogram::to_device`](super::mel::MelSpectrogram::to_device) makes it.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_shards::MelSpectrogram;
///
/// let device = Device::default();
/// let mel = MelSpectrogram::new(16_000, 400, 160, 80)?.to_device(&device); // make it once: it has the tables
/// let wave: Tensor<2> = Tensor::ones([4, 16_000], &device); // sounds, frames
/// assert_eq!(mel.decibels(wave)?.dims(), [4, 101, 80]); // sounds, time, bands
/// # Ok::<(), burn_shards::DataError>(())
/// ```
///
/// Call it in the `finish` of a collate, on sounds that were padded with zeros. The numbers are those of
/// [`MelSpectrogram`](super::mel::MelSpectrogram) but for rounding, which on CUDA is to 11 bits (TF32): bands that are 50 decibels below the
/// loudest one are not exact. The last spectra of a sound that is shorter than its batch are others:
/// its end is not mirrored, but followed by the zeros. A sound of `frames` has the first `frames / hop_length + 1` spectra.
///
/// Batches are on the device of the tables, else Burn panics. With several devices, make one for each.
#[derive(Debug, Clone)]
pub struct BatchMelSpectrogram {
    /// Cosines and sines of each frequency, with the window: `[n_fft, 2 * frequencies]`.
    waves: Tensor<2>,
    /// `[2 * frequencies, bands]`.
    weights: Tensor<2>,
    hop: usize,
}

impl BatchMelSpectrogram {
    pub(super) fn new(waves: Vec<f32>, weights: Vec<f32>, bands: usize, hop: usize, device: &Device) -> Self {
        let columns = weights.len() / bands;
        let matrix = |data: Vec<f32>, columns: usize| {
            let shape = [data.len() / columns, columns];
            Tensor::from_data(TensorData::new(data, shape), device)
        };
        Self { waves: matrix(waves, columns), weights: matrix(weights, bands), hop }
    }

    /// The power in each band, `[batch, time, bands]`, of sounds of one channel, `[batch, frames]`.
    ///
    /// # Errors
    /// If there are no more than half of `n_fft` frames.
    pub fn power(&self, wave: Tensor<2>) -> Result<Tensor<3>, DataError> {
        let ([size, _], [_, frames]) = (self.waves.dims(), wave.dims());
        let half = size / 2;
        if frames <= half {
            let advice = format!("pad the sounds to more than {half} frames");
            return Err(DataError::option("BatchMelSpectrogram", format!("sounds of {frames} frames"), advice));
        }
        let (sounds, count) = (wave.dims()[0], (frames + 2 * half - size) / self.hop + 1);
        // Copies, because CUDA's products of matrices refuse the overlapping rows of `unfold`.
        let range = |end: usize| Tensor::<1, Int>::arange(0..end as i64, &wave.device());
        let starts: Tensor<2, Int> = (range(count) * self.hop as i64).unsqueeze_dim(1);
        let places = (starts + range(size).unsqueeze()).reshape([count * size]);
        let windows = wave.pad([(half, half)], PadMode::Reflect).select(1, places).reshape([sounds * count, size]);
        let spectra = windows.matmul(self.waves.clone());
        let bands = (spectra.clone() * spectra).matmul(self.weights.clone());
        Ok(bands.reshape([sounds as i64, count as i64, -1]))
    }

    /// [`power`](Self::power) in decibels: `10 * log10(power)`, at least -100.
    ///
    /// # Errors
    /// As for [`power`](Self::power).
    pub fn decibels(&self, wave: Tensor<2>) -> Result<Tensor<3>, DataError> {
        Ok(self.power(wave)?.clamp_min(1e-10).log() * (10.0 / std::f64::consts::LN_10))
    }
}
