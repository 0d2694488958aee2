//! Shares that are drawn from the distribution Beta(alpha, alpha).

use crate::{error::Error, rng::KeyedRng};
use libm::{exp, log};
use rand::{RngExt, distr::Open01};

/// Checks the parameter of the distribution.
pub(in crate::images) fn checked(option: &'static str, alpha: f64) -> Result<f64, Error> {
    if alpha.is_finite() && alpha > 0.0 {
        return Ok(alpha);
    }
    Err(Error::config(option, format!("alpha is {alpha}"), "give a number above 0, such as 1.0"))
}

/// Draws a number from 0 to 1, by logarithms that are the same on every system.
///
/// Cheng, "Generating beta variates with nonintegral shape parameters", 1978, with both parameters the same.
pub(in crate::images) fn draw(alpha: f64, rng: &mut KeyedRng) -> f64 {
    loop {
        let (u, other): (f64, f64) = (rng.sample(Open01), rng.sample(Open01));
        let z = u * u * other;
        let odds = log(u / (1.0 - u));
        if alpha > 1.0 {
            let w = alpha * exp(odds / alpha.sqrt());
            if takes_high(alpha, odds, w, z) {
                return alpha / (alpha + w);
            }
        } else {
            let w = alpha * exp(odds / alpha);
            if takes_low(alpha, odds, w, [u, other, z]) {
                return if w.is_finite() { w / (alpha + w) } else { 1.0 };
            }
        }
    }
}

/// Whether algorithm BB, for an alpha above 1, takes a draw.
#[expect(clippy::neg_cmp_op_on_partial_ord, reason = "what cannot be compared is taken")]
fn takes_high(alpha: f64, odds: f64, w: f64, z: f64) -> bool {
    let r = (alpha.sqrt() + 1.0) * odds - log(4.0);
    let s = alpha + r - w;
    // The first needs no logarithm of a draw.
    s + 1.0 + log(5.0) >= 5.0 * z || s >= log(z) || !(r + 2.0 * alpha * log(2.0 * alpha / (alpha + w)) < log(z))
}

/// Whether algorithm BC, for an alpha of at most 1, takes a draw.
#[expect(clippy::neg_cmp_op_on_partial_ord, reason = "what cannot be compared is taken")]
fn takes_low(alpha: f64, odds: f64, w: f64, [u, other, z]: [f64; 3]) -> bool {
    if u < 0.5 {
        if 0.25 * other + z - u * other >= (1.0 + 3.0 * alpha) / 16.0 {
            return false;
        }
    } else if z <= 0.25 {
        return true;
    } else if z >= 0.25 + 0.75 * alpha {
        return false;
    }
    !(2.0 * alpha * (log(2.0 * alpha / (alpha + w)) + odds / alpha) - log(4.0) < log(z))
}
