//! Checks of weights for samplers.

use super::packed::listed;
use crate::fault::Error;

/// Returns the checked weights: none is NaN, infinite or negative, and at least one is positive.
///
/// `option` is the name of the method, for errors. No memory is one too.
pub(crate) fn checked<W: Into<f64>>(
    option: &'static str,
    weights: impl IntoIterator<Item = W>,
) -> Result<Vec<f64>, Error> {
    let weights = weights.into_iter();
    let weights: Vec<f64> = listed(option, weights.size_hint().0, weights.map(Into::into))?;
    if let Some((at, weight)) = weights.iter().enumerate().find(|(_, weight)| !weight.is_finite() || **weight < 0.0) {
        let advice = "weights must be finite and at least 0; use 0 for what must not be drawn";
        return Err(Error::config(option, format!("weight {at} is {weight}"), advice));
    }
    if weights.is_empty() {
        return Err(Error::config(option, "there are no weights", "give one for each item"));
    }
    if weights.iter().all(|weight| *weight == 0.0) {
        return Err(Error::config(option, "all weights are 0", "let at least one be positive"));
    }
    Ok(weights)
}

/// Checks that there is one value for each item of the dataset. `what` names the values.
pub(crate) fn check_count(option: &'static str, what: &str, count: usize, dataset_len: usize) -> Result<(), Error> {
    if count == dataset_len {
        return Ok(());
    }
    let problem = format!("{count} {what} for a dataset of {dataset_len} items");
    Err(Error::config(option, problem, "give one for each item, in the dataset's order"))
}

/// Adds the sums of the two halves recursively. So the rounding error grows only with the logarithm of the length (N.
/// Higham, "The Accuracy of Floating Point Summation", SIAM J. Sci. Comput. 14(4), 1993).
pub(crate) fn pairwise_sum(values: &[f64], of: &impl Fn(f64) -> f64) -> f64 {
    if values.len() <= 64 {
        return values.iter().map(|&value| of(value)).sum();
    }
    let (left, right) = values.split_at(values.len() / 2);
    pairwise_sum(left, of) + pairwise_sum(right, of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_weights_are_refused_with_advice() {
        let refused = |weights: &[f64]| checked("w", weights.iter().copied()).unwrap_err().to_string();
        assert!(refused(&[1.0, f64::NAN]).contains("weight 1 is NaN"));
        assert!(refused(&[f64::INFINITY]).contains("weight 0 is inf"));
        assert!(refused(&[1.0, 0.0, -0.5]).contains("weight 2 is -0.5"));
        assert!(refused(&[0.0, 0.0]).contains("all weights are 0"));
        assert!(refused(&[]).contains("no weights"));
        assert_eq!(checked("w", [0u32, 3]).unwrap(), [0.0, 3.0]);
    }

    #[test]
    fn sums_of_many_are_exact_enough() {
        let values = vec![0.1; 1 << 20];
        let sum = pairwise_sum(&values, &|value| value);
        assert!((sum / (0.1 * f64::from(1 << 20)) - 1.0).abs() < 1e-14, "{sum}");
    }
}
