//! The operations that `RandAugment`, `TrivialAugmentWide`, `AutoAugment` and `AugMix` draw from.

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
/// Ranges are those of [`RandAugment`](crate::images::RandAugment) and [`AutoAugment`](crate::images::AutoAugment). Where
/// [`TrivialAugmentWide`](crate::images::TrivialAugmentWide) has another range, it comes second.
/// [`AugMix`](crate::images::AugMix) moves by up to a third of a side, and keeps 4 to 0 bits.
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

/// What an operation does, without its strength.
#[derive(Debug, Clone, Copy)]
#[rustfmt::skip]
pub(crate) enum OpKind {
    Identity, ShearX, ShearY, TranslateX, TranslateY, Rotate, Brightness, Color, Contrast, Sharpness, Posterize, Solarize,
    AutoContrast, Equalize, Invert,
}

impl OpKind {
    /// The operations of `RandAugment`. Draws count them, so their order is a promise.
    #[rustfmt::skip]
    pub(crate) const ALL: [Self; 14] = [
        Self::Identity, Self::ShearX, Self::ShearY, Self::TranslateX, Self::TranslateY, Self::Rotate, Self::Brightness,
        Self::Color, Self::Contrast, Self::Sharpness, Self::Posterize, Self::Solarize, Self::AutoContrast, Self::Equalize,
    ];
}

/// The greatest strengths of operations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strengths {
    pub(crate) shear: f64,
    pub(crate) degrees: f64,
    pub(crate) factor: f64,
    /// The bits that are kept with no strength, and with the greatest.
    pub(crate) bits: [f64; 2],
    /// The longest moves, across and down.
    pub(crate) shifts: [f64; 2],
}

impl Strengths {
    /// Those of `RandAugment` for an image of this size.
    pub(crate) fn new(width: u32, height: u32) -> Self {
        let shifts = [width, height].map(|side| 150.0 / 331.0 * f64::from(side));
        Self { shear: 0.3, degrees: 30.0, factor: 0.9, bits: [8.0, 4.0], shifts }
    }

    /// Draws one of the kinds, all equally likely, and its sign. It has this share of its greatest strength.
    pub(crate) fn draw(&self, kinds: &[OpKind], share: f64, rng: &mut KeyedRng) -> RandAugmentOp {
        let kind = kinds[rng.random_range(0..kinds.len())];
        let mut signed = |most: f64| if rng.random_bool(0.5) { -(share * most) } else { share * most };
        match kind {
            OpKind::Identity => RandAugmentOp::Identity,
            OpKind::ShearX => RandAugmentOp::ShearX(signed(self.shear)),
            OpKind::ShearY => RandAugmentOp::ShearY(signed(self.shear)),
            OpKind::TranslateX => RandAugmentOp::TranslateX(signed(self.shifts[0]).trunc()),
            OpKind::TranslateY => RandAugmentOp::TranslateY(signed(self.shifts[1]).trunc()),
            OpKind::Rotate => RandAugmentOp::Rotate(signed(self.degrees)),
            OpKind::Brightness => RandAugmentOp::Brightness(1.0 + signed(self.factor) as f32),
            OpKind::Color => RandAugmentOp::Color(1.0 + signed(self.factor) as f32),
            OpKind::Contrast => RandAugmentOp::Contrast(1.0 + signed(self.factor) as f32),
            OpKind::Sharpness => RandAugmentOp::Sharpness(1.0 + signed(self.factor) as f32),
            OpKind::Posterize => {
                let [most, least] = self.bits;
                RandAugmentOp::Posterize((most - ((most - least) * share).round_ties_even()) as u8)
            }
            OpKind::Solarize => RandAugmentOp::Solarize((255.0 * (1.0 - share)) as f32),
            OpKind::AutoContrast => RandAugmentOp::AutoContrast,
            OpKind::Equalize => RandAugmentOp::Equalize,
            OpKind::Invert => RandAugmentOp::Solarize(0.0),
        }
    }
}

impl RandAugmentOp {
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
