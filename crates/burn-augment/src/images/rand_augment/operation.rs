//! The operations that `RandAugment` and `TrivialAugmentWide` draw from.

use crate::{
    images::{
        colour::{Adjust, tone},
        error::VisionError,
        geometry::{Affine, Interpolation, Mapping, Matrix},
        parameters::Size,
        picture::Picture,
    },
    rng::KeyedRng,
};
use rand::RngExt;

/// One change with its strength. If a strength has a sign, both signs are equally likely.
///
/// Ranges are those of [`RandAugment`](crate::images::RandAugment). Where
/// [`TrivialAugmentWide`](crate::images::TrivialAugmentWide) has another range, it comes second.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RandAugmentOp {
    /// No change.
    Identity,
    /// Each row moves this many columns further than the row above it: up to 0.3, or 0.99, either way.
    ShearX(f64),
    /// Each column moves this many rows further than the column to its left: up to 0.3, or 0.99, either way.
    ShearY(f64),
    /// The image moves by whole columns: up to 150/331 of the width, or 32 columns, either way.
    TranslateX(f64),
    /// The image moves by whole rows: up to 150/331 of the height, or 32 rows, either way.
    TranslateY(f64),
    /// The image rotates counterclockwise by this many degrees: up to 30, or 135, either way.
    Rotate(f64),
    /// A factor: 0.1 to 1.9, or 0.01 to 1.99.
    Brightness(f32),
    /// A factor of saturation: 0.1 to 1.9, or 0.01 to 1.99.
    Color(f32),
    /// A factor: 0.1 to 1.9, or 0.01 to 1.99.
    Contrast(f32),
    /// A factor: 0.1 to 1.9, or 0.01 to 1.99. Below 1 it blurs.
    Sharpness(f32),
    /// The bits to keep of each byte: 8 to 4, or 8 to 2.
    Posterize(u8),
    /// Bytes of this value or more are inverted: 255 to 0.
    Solarize(f32),
    /// Each channel is stretched to the whole range of 0 to 255.
    AutoContrast,
    /// Each channel's histogram is made flat.
    Equalize,
}

impl RandAugmentOp {
    /// Draws one of the operations, all of them equally likely, and its sign. The strength is a share of the range, which may
    /// be the wide one. `shifts` are the longest moves, across and down.
    pub(crate) fn draw(strength: f64, is_wide: bool, shifts: [f64; 2], rng: &mut KeyedRng) -> Self {
        let (shear, degrees, factor, bits) = if is_wide { (0.99, 135.0, 0.99, 6.0) } else { (0.3, 30.0, 0.9, 4.0) };
        let operation = rng.random_range(0..14_usize);
        let mut signed = |most: f64| if rng.random_bool(0.5) { -(strength * most) } else { strength * most };
        match operation {
            0 => Self::Identity,
            1 => Self::ShearX(signed(shear)),
            2 => Self::ShearY(signed(shear)),
            3 => Self::TranslateX(signed(shifts[0]).trunc()),
            4 => Self::TranslateY(signed(shifts[1]).trunc()),
            5 => Self::Rotate(signed(degrees)),
            6 => Self::Brightness(1.0 + signed(factor) as f32),
            7 => Self::Color(1.0 + signed(factor) as f32),
            8 => Self::Contrast(1.0 + signed(factor) as f32),
            9 => Self::Sharpness(1.0 + signed(factor) as f32),
            10 => Self::Posterize(8 - (bits * strength).round_ties_even() as u8),
            11 => Self::Solarize((255.0 * (1.0 - strength)) as f32),
            12 => Self::AutoContrast,
            _ => Self::Equalize,
        }
    }

    /// Changes a picture.
    pub(crate) fn apply(
        self,
        picture: &mut impl Picture,
        interpolation: Interpolation,
        fill: [u8; 3],
    ) -> Result<(), VisionError> {
        let (width, height) = picture.dimensions();
        // Shears keep the top left corner in place, as in AutoAugment, not the middle.
        let (half_width, half_height) = (f64::from(width) / 2.0, f64::from(height) / 2.0);
        let inverse = match self {
            Self::ShearX(by) => Matrix::affine([[1.0, by, by * half_height], [0.0, 1.0, 0.0]]),
            Self::ShearY(by) => Matrix::affine([[1.0, 0.0, 0.0], [by, 1.0, by * half_width]]),
            Self::TranslateX(by) => Matrix::scale_shift([1.0; 2], [-by, 0.0]),
            Self::TranslateY(by) => Matrix::scale_shift([1.0; 2], [0.0, -by]),
            Self::Rotate(degrees) => Affine::turn(-degrees).inverse(),
            Self::Identity => return Ok(()),
            Self::Brightness(factor) => return picture.adjust(Adjust::Brightness(factor)),
            Self::Color(factor) => return picture.adjust(Adjust::Saturation(factor)),
            Self::Contrast(factor) => return picture.adjust(Adjust::Contrast(factor)),
            Self::Sharpness(factor) => return picture.repaint(&mut |image| tone::sharpness(image, factor)),
            Self::Posterize(bits) => return picture.repaint(&mut |image| tone::posterize(image, bits)),
            Self::Solarize(threshold) => return picture.repaint(&mut |image| tone::solarize(image, threshold)),
            Self::AutoContrast => return picture.repaint(&mut tone::auto_contrast),
            Self::Equalize => return picture.repaint(&mut tone::equalize),
        };
        picture.warp(Size { width, height }, Mapping::Matrix(inverse), interpolation, fill)
    }
}
