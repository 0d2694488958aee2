//! Rotation by a random angle.

use super::{
    affine::{Mapping, about, warp_options},
    matrix::Matrix,
    pixels::Interpolation,
    random_affine::Affine,
};
use crate::{
    error::Error,
    images::{
        error::VisionError,
        parameters::{Interval, Size, Spread, checked},
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};

/// Rotates the image about its centre by a uniformly random angle.
///
/// ```
/// use burn_augment::images::{Interpolation, RandomRotation};
///
/// let tilt = RandomRotation::new(15.0)?.fill([127; 3]); // -15 to 15 degrees
/// let turn = RandomRotation::new((0.0, 90.0))?.interpolation(Interpolation::Bilinear).expand(true);
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// It works as torchvision's `RandomRotation`. Positive angles rotate counterclockwise. A multiple
/// of 90 degrees moves whole pixels. With `expand`, for a square, or by 180 degrees, it loses no pixel, and
/// none has the fill colour. [`RandomRotate90`](super::RandomRotate90) draws only such rotations.
///
/// Bilinear borders differ: torchvision multiplies twice by the share of a pixel that the image covers. If the image
/// covers half of a pixel p, over black, torchvision makes p / 4 of it, and this p / 2.
#[derive(Debug, Clone, Copy)]
pub struct RandomRotation {
    degrees: Interval,
    interpolation: Interpolation,
    expand: bool,
    center: Option<[f64; 2]>,
    fill: [u8; 3],
}

impl RandomRotation {
    /// Sets the range of the angle, in degrees: the largest angle in either direction, or a pair of the least and the
    /// greatest angle.
    ///
    /// # Errors
    /// If a single number is negative, the greater angle of a pair comes first, or an angle is beyond 360 in either
    /// direction.
    pub fn new(turn: impl Into<Spread>) -> Result<Self, Error> {
        let degrees = turn.into().either_way("RandomRotation::new", 360.0)?;
        Ok(Self { degrees, interpolation: Interpolation::Nearest, expand: false, center: None, fill: [0; 3] })
    }

    /// Sets whether the result grows to contain the whole rotated image. Default: false, which keeps the size.
    pub fn expand(mut self, yes: bool) -> Self {
        self.expand = yes;
        self
    }

    /// Sets the place to rotate about, in pixels from the top left corner. With `expand` it has no effect. Default: the
    /// middle of the image.
    ///
    /// # Errors
    /// If a number is not finite, or beyond a million.
    pub fn center(mut self, x: f64, y: f64) -> Result<Self, Error> {
        let at = |place| checked("RandomRotation::center", place, -1e6, 1e6);
        self.center = Some([at(x)?, at(y)?]);
        Ok(self)
    }

    /// Draws the angle, in degrees.
    pub fn draw(&self, rng: &mut KeyedRng) -> f64 {
        self.degrees.uniform(rng)
    }
}

warp_options!(RandomRotation);

impl Transform for RandomRotation {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let degrees = self.draw(rng);
        if degrees % 360.0 == 0.0 {
            return Ok(());
        }
        let (inverse, (width, height)) = (Affine::turn(-degrees).inverse(), image.dimensions());
        let size = if self.expand { expanded(width, height, inverse) } else { Size { width, height } };
        let inverse = about(self.center.filter(|_| !self.expand), inverse, (width, height));
        image.warp(size, Mapping::Matrix(inverse), self.interpolation, self.fill)
    }
}

/// Returns the size that holds all four corners, on the image's own grid of pixels. After a quarter turn the pixels have
/// a grid of their own.
///
/// Less than a ten-thousandth of a pixel is a rounding error.
fn expanded(width: u32, height: u32, Matrix([[cos, sin, _], ..]): Matrix) -> Size {
    if cos == 0.0 {
        return Size { width: height, height: width };
    }
    let (width, height) = (f64::from(width), f64::from(height));
    let side = |along: f64, across: f64| {
        let half = (along * cos.abs() + across * sin.abs()) / 2.0;
        let exact = |x: f64| (x * 1e4).round() / 1e4;
        (exact(along / 2.0 + half).ceil() - exact(along / 2.0 - half).floor()) as u32
    };
    Size { width: side(width, height), height: side(height, width) }
}
