//! Functions that the code of the derives calls. They are not part of the public API.

use crate::fault::{BoxError, Error};
pub use burn::tensor::{Bool, DType, Element, Float, FloatDType, Int, IntDType, Tensor, bf16, f16};
use std::fmt::Display;

#[cfg(feature = "vision")]
pub use crate::vision::BoxFormat;

/// Computes `(value / most - mean) / std` of values `[N, C, ..]`, where `most` is 255 for bytes and 1 for other numbers. There is one mean
/// and one deviation, or one of each for each of the C channels.
///
/// # Errors
/// If their number is different, or a deviation is not above 0.
pub fn normalize<const D: usize>(
    values: Tensor<D>,
    mean: &[f32],
    std: &[f32],
    is_bytes: bool,
) -> Result<Tensor<D>, Error> {
    let most = if is_bytes { 255.0 } else { 1.0 };
    Ok(burn_augment::for_loader::normalize("#[sample(mean, std)]", values, (mean, std), most)?)
}

/// Converts a `usize` or an `isize`, for which there is no dtype, to `i64`.
///
/// # Errors
/// If the value does not fit.
pub fn widened<T: TryInto<i64> + Copy + Display>(value: T, name: &str) -> Result<i64, BoxError> {
    value.try_into().map_err(|_| {
        let advice = "write `u64` in place of `usize`, and `dtype = u64`";
        format!("value {value} does not fit into i64: {advice}, at the field `{name}`").into()
    })
}

/// Returns the numbers of an array that has the shape of a row. If `varies`, the first dimension may have any length.
///
/// # Errors
/// If the array has another shape.
pub fn shaped<'a, T>(numbers: &'a [T], shape: &[usize], row: &[usize], varies: bool) -> Result<&'a [T], BoxError> {
    let first = usize::from(varies);
    if shape.len() == row.len() && shape[first..] == row[first..] {
        return Ok(numbers);
    }
    Err(format!("an array of {shape:?} for rows of {row:?}{}", if varies { " at most" } else { "" }).into())
}
