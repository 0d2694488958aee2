//! The operations that `RandAugment` and `TrivialAugmentWide` draw from.

use crate::{
    rng::KeyedRng,
    vision::{
        colour::{Adjust, tone},
        error::VisionError,
        geometry::{Interpolation, Inverse},
        parameters::Size,
        picture::Picture,
    },
};
use rand::{RngExt, seq::IndexedRandom};

/// One change with its strength. If the strength can have a sign, both signs are equally likely.
///
/// Ranges are those of [`RandAugment`](crate::vision::RandAugment). Where
/// [`TrivialAugmentWide`](crate::vision::TrivialAugmentWide) has another range, it comes second.
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
    /// The image turns counterclockwise by this many degrees: up to 30, or 135, either way.
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

/// The operations' changes at full strength.
#[derive(Debug)]
pub(crate) struct FullStrength {
    pub(crate) shear: f64,
    /// In pixels: across, then down.
    pub(crate) shift: [f64; 2],
    pub(crate) degrees: f64,
    /// How far a factor is from 1.
    pub(crate) factor: f64,
    /// The bits that are not kept.
    pub(crate) bits: f64,
}

/// Makes each operation of the changes at full strength, and the strength from 0 to 1.
const OPS: [fn(&FullStrength, f64, &mut KeyedRng) -> RandAugmentOp; 14] = {
    use RandAugmentOp as Op;
    [
        |_, _, _| Op::Identity,
        |most, strength, rng| Op::ShearX(signed(strength * most.shear, rng)),
        |most, strength, rng| Op::ShearY(signed(strength * most.shear, rng)),
        |most, strength, rng| Op::TranslateX(signed(strength * most.shift[0], rng).trunc()),
        |most, strength, rng| Op::TranslateY(signed(strength * most.shift[1], rng).trunc()),
        |most, strength, rng| Op::Rotate(signed(strength * most.degrees, rng)),
        |most, strength, rng| Op::Brightness(1.0 + signed(strength * most.factor, rng) as f32),
        |most, strength, rng| Op::Color(1.0 + signed(strength * most.factor, rng) as f32),
        |most, strength, rng| Op::Contrast(1.0 + signed(strength * most.factor, rng) as f32),
        |most, strength, rng| Op::Sharpness(1.0 + signed(strength * most.factor, rng) as f32),
        |most, strength, _| Op::Posterize(8 - (most.bits * strength).round_ties_even() as u8),
        |_, strength, _| Op::Solarize((255.0 * (1.0 - strength)) as f32),
        |_, _, _| Op::AutoContrast,
        |_, _, _| Op::Equalize,
    ]
};

fn signed(amount: f64, rng: &mut KeyedRng) -> f64 {
    if rng.random_bool(0.5) { -amount } else { amount }
}

impl FullStrength {
    /// Draws one of the operations, all of them equally likely, and its sign.
    pub(crate) fn operation(&self, strength: f64, rng: &mut KeyedRng) -> RandAugmentOp {
        OPS.choose(rng).map_or(RandAugmentOp::Identity, |make| make(self, strength, rng))
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
        let same = Inverse::IDENTITY;
        let (width, height) = picture.dimensions();
        // Shears keep the top left corner in place, as in AutoAugment, not the middle.
        let (half_width, half_height) = (f64::from(width) / 2.0, f64::from(height) / 2.0);
        let inverse = match self {
            Self::ShearX(by) => Inverse { xy: by, x0: by * half_height, ..same },
            Self::ShearY(by) => Inverse { yx: by, y0: by * half_width, ..same },
            Self::TranslateX(by) => Inverse { x0: -by, ..same },
            Self::TranslateY(by) => Inverse { y0: -by, ..same },
            Self::Rotate(degrees) => Inverse::rotation(degrees),
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
        picture.warp(Size { width, height }, inverse, interpolation, fill)
    }
}
