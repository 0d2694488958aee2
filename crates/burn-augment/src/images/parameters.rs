//! Parameters of transforms: sizes, spreads and random draws.
//!
//! Draws are the same on every CPU: `exp`, `ln`, `sin` and `cos` are those of the crate libm, not those of the system.

pub(crate) use crate::size::Size;
use crate::{error::Error, rng::KeyedRng};
use rand::{RngExt, distr::Open01};
use std::f64::consts::TAU;

/// The range of a parameter: one number around a middle, or a pair of the least and the greatest value.
///
/// The method that takes it says what one number means: `brightness(0.4)` is `brightness((0.6, 1.4))`, and a rotation
/// by up to `10.0` degrees is one by `(-10.0, 10.0)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spread {
    /// Up to this distance from the middle, in either direction.
    Around(f64),
    /// From the first to the second.
    Between(f64, f64),
}

impl From<f64> for Spread {
    fn from(by: f64) -> Self {
        Self::Around(by)
    }
}

impl From<(f64, f64)> for Spread {
    fn from((low, high): (f64, f64)) -> Self {
        Self::Between(low, high)
    }
}

impl Spread {
    /// Returns a range around 0, up to `most` either way.
    pub(super) fn either_way(self, option: &'static str, most: f64) -> Result<Interval, Error> {
        match self {
            Self::Around(by) => checked(option, by, 0.0, most).map(|by| Interval::new(-by, by)),
            Self::Between(low, high) => Interval::checked(option, low, high, -most, most),
        }
    }
}

/// A range from `low` to `high`, both finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Interval {
    pub(crate) const fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    /// Returns the range from `low` to `high`, which must lie within `least` to `most`.
    pub(crate) fn checked(option: &'static str, low: f64, high: f64, least: f64, most: f64) -> Result<Self, Error> {
        if least <= low && low <= high && high <= most {
            return Ok(Self { low, high });
        }
        let advice = match (least, most) {
            (f64::MIN_POSITIVE, f64::MAX) => "give two numbers above 0, the smaller first".into(),
            (f64::MIN_POSITIVE, most) => format!("give two numbers above 0, up to {most}, the smaller first"),
            (least, f64::MAX) => format!("give two numbers from {least} up, the smaller first"),
            _ => format!("give two numbers from {least} to {most}, the smaller first"),
        };
        Err(Error::config(option, format!("({low}, {high}) is not a range"), advice))
    }

    pub(crate) fn uniform(self, rng: &mut KeyedRng) -> f64 {
        rng.random_range(self.low..=self.high)
    }

    /// Draws a number whose logarithm is uniform: 1/2 is as likely as 2.
    pub(crate) fn log_uniform(self, rng: &mut KeyedRng) -> f64 {
        libm::exp(rng.random_range(libm::log(self.low)..=libm::log(self.high)))
    }
}

/// Returns a number that must lie within `least` to `most`.
pub(crate) fn checked(option: &'static str, number: f64, least: f64, most: f64) -> Result<f64, Error> {
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    let advice = if most == f64::MAX { format!("{least} up") } else { format!("{least} to {most}") };
    Err(Error::config(option, format!("{number} is not in its range"), format!("give a number from {advice}")))
}

/// Draws two numbers from the normal distribution of mean 0 and standard deviation 1.
///
/// Box and Muller, "A note on the generation of random normal deviates", 1958.
pub(crate) fn normals(rng: &mut KeyedRng) -> [f64; 2] {
    let radius = (-2.0 * libm::log(rng.sample(Open01))).sqrt();
    let (sin, cos) = libm::sincos(TAU * rng.sample::<f64, _>(Open01));
    [radius * cos, radius * sin]
}

/// Draws `n` shares that sum to 1 from the Dirichlet distribution with `n` parameters `alpha`.
pub(crate) fn dirichlet(alpha: f64, n: usize, rng: &mut KeyedRng) -> Vec<f64> {
    // Of a small `alpha` the numbers are below all floats, and their logarithms are not.
    let logs: Vec<f64> = (0..n).map(|_| log_gamma(alpha, rng).max(f64::MIN)).collect();
    let most = logs.iter().copied().fold(f64::MIN, f64::max);
    let parts: Vec<f64> = logs.into_iter().map(|log| libm::exp(log - most)).collect();
    let sum: f64 = parts.iter().sum();
    parts.into_iter().map(|part| part / sum).collect()
}

/// Returns the parameter of a distribution, which must be above 0.
pub(crate) fn positive(option: &'static str, alpha: f64) -> Result<f64, Error> {
    if alpha.is_finite() && alpha > 0.0 {
        return Ok(alpha);
    }
    Err(Error::config(option, format!("alpha is {alpha}"), "give a number above 0, such as 1.0"))
}

/// Draws a number from 0 to 1 from the distribution Beta(alpha, alpha).
pub(crate) fn beta(alpha: f64, rng: &mut KeyedRng) -> f64 {
    dirichlet(alpha, 2, rng)[0]
}

/// Draws the logarithm of a number of the distribution Gamma(alpha, 1).
///
/// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000, of `alpha` + 1, which it takes down.
fn log_gamma(alpha: f64, rng: &mut KeyedRng) -> f64 {
    let d = alpha + 2.0 / 3.0;
    loop {
        let (x, u): (f64, f64) = (normals(rng)[0], rng.sample(Open01));
        let root = 1.0 + x / (9.0 * d).sqrt();
        let log = 3.0 * libm::log(root);
        if root > 0.0 && libm::log(u) < 0.5 * x * x + d - d * root * root * root + d * log {
            return libm::log(d) + log + libm::log(rng.sample(Open01)) / alpha;
        }
    }
}

/// Rounds to the nearest integer, and halves to the even one, as Python's `round` does.
pub(crate) fn round(x: f64) -> u32 {
    x.round_ties_even() as u32
}

/// The colour of what has no image: YOLO's grey.
pub(crate) const GREY: [u8; 3] = [114; 3];

/// The longest side that a transform makes: JPEG's limit.
pub(crate) const MAX_SIDE: u32 = 65_535;

impl Size {
    /// The largest factor with which an image of this width and height fits.
    pub(crate) fn factor_for(self, (width, height): (u32, u32)) -> f64 {
        (f64::from(self.height) / f64::from(height)).min(f64::from(self.width) / f64::from(width))
    }

    /// The size of an image of this width and height that is scaled until it fits, by at most the factor `most`.
    pub(crate) fn fitted(self, (width, height): (u32, u32), most: f64) -> Self {
        let factor = self.factor_for((width, height)).min(most);
        let side = |side: u32, limit: u32| round(f64::from(side) * factor).clamp(1, limit);
        Self { height: side(height, self.height), width: side(width, self.width) }
    }

    pub(crate) fn checked(self, option: &'static str) -> Result<Self, Error> {
        let fine = 1..=MAX_SIDE;
        if fine.contains(&self.height) && fine.contains(&self.width) {
            return Ok(self);
        }
        let problem = format!("{} x {} pixels (height x width) is not a size", self.height, self.width);
        Err(Error::config(option, problem, format!("give sides from 1 to {MAX_SIDE}")))
    }
}
