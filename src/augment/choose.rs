//! Augmentations that run others, or not.

use super::Augment;
use crate::{
    error::{BoxError, Error},
    rng::KeyedRng,
};
use rand::RngExt;
use std::{fmt, sync::Arc};

/// Runs an augmentation with a probability, and otherwise leaves the sample as it is.
///
/// ```
/// use burn_pinned::{Augment, KeyedRng, RandomApply};
///
/// let negate = |x: f32, _: &mut KeyedRng| -x;
/// let half_the_time = RandomApply::new(0.5, negate)?;
/// assert_eq!(half_the_time.apply(3.0, &mut KeyedRng::for_order(7, 0))?.abs(), 3.0);
/// # Ok::<(), burn_pinned::BoxError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RandomApply<A> {
    p: f64,
    augment: A,
}

impl<A> RandomApply<A> {
    /// Runs `augment` with probability `p`, from 0 to 1.
    ///
    /// # Errors
    /// If `p` is not a probability.
    pub fn new(p: f64, augment: A) -> Result<Self, Error> {
        Ok(Self { p: probability("RandomApply::new", p)?, augment })
    }
}

impl<I, A: Augment<I>> Augment<I> for RandomApply<A> {
    fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
        if rng.random_bool(self.p) { self.augment.apply(sample, rng) } else { Ok(sample) }
    }
}

/// Runs one of several augmentations, each as often as the others or by weights.
///
/// ```
/// use burn_pinned::{Augment, KeyedRng, OneOf};
///
/// let up = |x: i32, _: &mut KeyedRng| x + 1;
/// let down = |x: i32, _: &mut KeyedRng| x - 1;
/// let step = OneOf::new(up).or(down).weights(&[3.0, 1.0])?; // up three times in four
/// assert_eq!(step.apply(0, &mut KeyedRng::for_order(7, 0))?.abs(), 1);
/// # Ok::<(), burn_pinned::BoxError>(())
/// ```
pub struct OneOf<I> {
    choices: Vec<Arc<dyn Augment<I>>>,
    /// The sums of the weights up to each choice; none where all weigh the same.
    sums: Option<Vec<f64>>,
}

impl<I> OneOf<I> {
    /// The first choice.
    pub fn new(augment: impl Augment<I>) -> Self {
        Self { choices: vec![Arc::new(augment)], sums: None }
    }

    /// One choice more. Forgets the weights: set them last.
    pub fn or(mut self, augment: impl Augment<I>) -> Self {
        self.choices.push(Arc::new(augment));
        self.sums = None;
        self
    }

    /// How often each is chosen, in the order of the choices; the weights need not sum to 1.
    ///
    /// # Errors
    /// If there are more or fewer weights than choices, one is negative or not finite, or all are 0.
    pub fn weights(mut self, weights: &[f64]) -> Result<Self, Error> {
        let bad = |problem: String| {
            let advice = format!("give {} weights from 0 up, one of them above 0", self.choices.len());
            Err(Error::config("OneOf::weights", problem, advice))
        };
        if weights.len() != self.choices.len() {
            return bad(format!("there are {} weights for {} choices", weights.len(), self.choices.len()));
        }
        if let Some(weight) = weights.iter().find(|weight| !(weight.is_finite() && **weight >= 0.0)) {
            return bad(format!("{weight} is not a weight"));
        }
        let sums: Vec<f64> = weights
            .iter()
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        match sums.last() {
            Some(&sum) if sum > 0.0 && sum.is_finite() => self.sums = Some(sums),
            sum => return bad(format!("the weights sum to {}", sum.copied().unwrap_or_default())),
        }
        Ok(self)
    }

    fn draw(&self, rng: &mut KeyedRng) -> usize {
        let last = self.choices.len() - 1;
        match &self.sums {
            None => rng.random_range(0..=last),
            // A choice of weight 0 ends where it begins, and is never the first to end beyond the point.
            Some(sums) => {
                let point = rng.random_range(0.0..sums[last]);
                sums.partition_point(|&sum| sum <= point)
            }
        }
    }
}

impl<I: 'static> Augment<I> for OneOf<I> {
    fn apply(&self, sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
        self.choices[self.draw(rng)].apply(sample, rng)
    }
}

impl<I> Clone for OneOf<I> {
    fn clone(&self) -> Self {
        Self { choices: self.choices.clone(), sums: self.sums.clone() }
    }
}

impl<I> fmt::Debug for OneOf<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneOf").field("choices", &self.choices.len()).field("sums", &self.sums).finish()
    }
}

/// `p`, if it is a probability.
pub(crate) fn probability(option: &'static str, p: f64) -> Result<f64, Error> {
    if (0.0..=1.0).contains(&p) {
        return Ok(p);
    }
    Err(Error::config(option, format!("{p} is not a probability"), "give a number from 0 to 1"))
}
