//! A random rotation, shift, scale and shear at once.

use super::{
    affine::{Mapping, about, warp_options},
    matrix::Matrix,
    pixels::Interpolation,
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

/// Rotates, shifts, scales and shears the image about its centre, each by a random amount.
///
/// ```
/// use burn_augment::images::RandomAffine;
///
/// let small = RandomAffine::new(15.0)?.translate(0.1, 0.1)?.scale(0.9, 1.1)?.shear(5.0, 0.0)?.fill([127; 3]);
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// It works as torchvision's `RandomAffine`. Positive angles rotate clockwise, unlike those of
/// [`RandomRotation`](super::RandomRotation). Bilinear borders differ from torchvision's, as those of a `RandomRotation`
/// do.
#[derive(Debug, Clone, Copy)]
pub struct RandomAffine {
    degrees: Interval,
    translate: Option<[f64; 2]>,
    scale: Option<Interval>,
    shear: Option<[Interval; 2]>,
    interpolation: Interpolation,
    center: Option<[f64; 2]>,
    fill: [u8; 3],
}

/// What a [`RandomAffine`] draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Affine {
    /// The rotation in degrees, clockwise.
    pub angle: f64,
    /// The shift in pixels: to the right, and down.
    pub translate: [f64; 2],
    /// The factor for both sides.
    pub scale: f64,
    /// The shears in degrees: of rows, and of columns.
    pub shear: [f64; 2],
}

impl RandomAffine {
    /// Sets the range of the rotation, in degrees: the largest angle in either direction, or a pair of the least and
    /// the greatest angle. 0 does not rotate.
    ///
    /// # Errors
    /// If a single number is negative, the greater angle of a pair comes first, or an angle is beyond 360 in either
    /// direction.
    pub fn new(turn: impl Into<Spread>) -> Result<Self, Error> {
        Ok(Self {
            degrees: turn.into().either_way("RandomAffine::new", 360.0)?,
            translate: None,
            scale: None,
            shear: None,
            interpolation: Interpolation::Nearest,
            center: None,
            fill: [0; 3],
        })
    }

    /// Sets the largest shift in either direction, as shares of the width and of the height. Shifts are whole pixels.
    /// Default: none.
    ///
    /// # Errors
    /// If a share is not from 0 to 1.
    pub fn translate(mut self, across: f64, down: f64) -> Result<Self, Error> {
        let check = |share| Interval::checked("RandomAffine::translate", 0.0, share, 0.0, 1.0);
        self.translate = Some([check(across)?.high, check(down)?.high]);
        Ok(self)
    }

    /// Sets the least and the greatest factor for the size. Default: 1.
    ///
    /// # Errors
    /// Unless `0 < low <= high`.
    pub fn scale(mut self, low: f64, high: f64) -> Result<Self, Error> {
        self.scale = Some(Interval::checked("RandomAffine::scale", low, high, f64::MIN_POSITIVE, f64::MAX)?);
        Ok(self)
    }

    /// Sets the shears of rows and of columns, in degrees: the largest angle in either direction, or a pair of the
    /// least and the greatest angle. Default: none.
    ///
    /// # Errors
    /// If a single number is negative, the greater angle of a pair comes first, or an angle is beyond 89 in either
    /// direction.
    pub fn shear(mut self, rows: impl Into<Spread>, columns: impl Into<Spread>) -> Result<Self, Error> {
        let of = |shear: Spread| shear.either_way("RandomAffine::shear", 89.0);
        self.shear = Some([of(rows.into())?, of(columns.into())?]);
        Ok(self)
    }

    /// Sets the place to rotate, scale and shear about, in pixels from the top left corner. Default: the middle of the
    /// image.
    ///
    /// # Errors
    /// If a number is not finite, or beyond a million.
    pub fn center(mut self, x: f64, y: f64) -> Result<Self, Error> {
        let at = |place| checked("RandomAffine::center", place, -1e6, 1e6);
        self.center = Some([at(x)?, at(y)?]);
        Ok(self)
    }

    /// Draws the changes to make to an image of `width` x `height`.
    pub fn draw(&self, width: u32, height: u32, rng: &mut KeyedRng) -> Affine {
        let angle = self.degrees.uniform(rng);
        let translate = self.translate.map_or([0.0; 2], |[across, down]| {
            let mut shift = |most: f64| Interval::new(-most, most).uniform(rng).round_ties_even();
            [shift(across * f64::from(width)), shift(down * f64::from(height))]
        });
        let scale = self.scale.map_or(1.0, |scale| scale.uniform(rng));
        let shear = self.shear.map_or([0.0; 2], |shear| shear.map(|shear| shear.uniform(rng)));
        Affine { angle, translate, scale, shear }
    }
}

warp_options!(RandomAffine);

impl Transform for RandomAffine {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        let inverse = about(self.center, self.draw(width, height, rng).inverse(), (width, height));
        image.warp(Size { height, width }, Mapping::Matrix(inverse), self.interpolation, self.fill)
    }
}

impl Affine {
    /// A rotation alone, by this many degrees, clockwise.
    pub(crate) fn turn(angle: f64) -> Self {
        Self { angle, translate: [0.0; 2], scale: 1.0, shear: [0.0; 2] }
    }

    /// The inverse, as in torchvision's `_get_inverse_affine_matrix`.
    pub(crate) fn inverse(self) -> Matrix {
        let Self { angle, translate: [right, below], scale, shear } = self;
        let (turn, [rows, columns]) = (angle.to_radians(), shear.map(f64::to_radians));
        let (sin_turn, cos_turn) = quarter_turns(angle).unwrap_or_else(|| libm::sincos(turn));
        let (sin, cos) = quarter_turns(angle - shear[1]).unwrap_or_else(|| libm::sincos(turn - columns));
        let (cos_columns, tan_rows) = (libm::cos(columns), libm::tan(rows));
        let (a, c) = (cos / cos_columns, sin / cos_columns);
        let (b, d) = (-(a * tan_rows + sin_turn), cos_turn - c * tan_rows);
        let [xx, xy, yx, yy] = [d, -b, -c, a].map(|entry| entry / scale);
        let (x0, y0) = (-(xx * right + xy * below), -(yx * right + yy * below));
        Matrix::affine([[xx, xy, x0], [yx, yy, y0]])
    }
}

/// Sine and cosine of quarter turns. They are not computed from radians: the cosine of a float near a quarter turn is
/// not 0, so a place on the border of two pixels could get either.
fn quarter_turns(degrees: f64) -> Option<(f64, f64)> {
    match degrees.rem_euclid(360.0) {
        0.0 => Some((0.0, 1.0)),
        90.0 => Some((1.0, 0.0)),
        180.0 => Some((0.0, -1.0)),
        270.0 => Some((-1.0, 0.0)),
        _ => None,
    }
}
