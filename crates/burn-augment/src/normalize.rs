//! Normalization by means and standard deviations, on the device.

use crate::error::Error;
use burn::tensor::{Tensor, TensorData};

/// Computes `(value / most - mean) / std` of values `[N, C, ..]`. There is one mean and one deviation, or one of each for each of the C
/// channels. `option` names the caller in errors.
///
/// # Errors
/// If their number is different, or a deviation is not above 0.
pub fn normalize<const D: usize>(
    option: &'static str,
    values: Tensor<D>,
    (mean, std): (&[f32], &[f32]),
    most: f32,
) -> Result<Tensor<D>, Error> {
    if let Some(std) = std.iter().find(|std| !(**std > 0.0 && std.is_finite())) {
        return Err(Error::config(option, format!("{std} is not a standard deviation"), "give numbers above 0"));
    }
    if let ([mean], [std]) = (mean, std) {
        return Ok(values.mul_scalar(1.0 / (most * std)).sub_scalar(mean / std));
    }
    let channels = values.dims().get(1).copied().unwrap_or(1);
    if mean.len() != channels || std.len() != channels {
        let problem = format!("{} means and {} deviations for {channels} channels", mean.len(), std.len());
        return Err(Error::config(option, problem, "give one of each for every channel, or one for all"));
    }
    let mut shape = [1; D];
    shape[1] = channels;
    let device = values.device();
    let each = |numbers: Vec<f32>| Tensor::<D>::from_data(TensorData::new(numbers, shape), &device);
    let scale = each(std.iter().map(|std| 1.0 / (most * std)).collect());
    let shift = each(mean.iter().zip(std).map(|(mean, std)| mean / std).collect());
    Ok(values * scale - shift)
}
