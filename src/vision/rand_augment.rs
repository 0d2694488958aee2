//! RandAugment: a few operations of one strength, chosen at random.

use super::{colour::tone, error::VisionError, parameters::Size};
use crate::{
    fault::Error,
    rng::KeyedRng,
    vision::{
        colour::Adjust,
        geometry::{Interpolation, Inverse, warp},
    },
};
use image::RgbImage;
use rand::{RngExt, seq::IndexedRandom};

/// Makes `num_ops` changes to each image. Each is drawn from all of [`RandAugmentOp`], all of them equally likely.
///
/// ```
/// use burn_pinned::vision::RandAugment;
///
/// let augment = RandAugment::new(2, 9)?.fill([124, 116, 104]);
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// The method is that of Cubuk et al., "RandAugment: Practical automated data augmentation with a reduced search
/// space", 2019. Operations, strengths and defaults are torchvision's: two operations, magnitude 9 of 31, nearest
/// interpolation, black fill. All of its fourteen operations are there.
///
/// Bilinear borders differ. torchvision, given a fill, multiplies twice by the share of a pixel that the image covers.
/// Where the image covers half of a pixel p, over black, the result is p / 4 there and p / 2 here.
#[derive(Debug, Clone, Copy)]
pub struct RandAugment {
    num_ops: usize,
    /// From 0 to 1.
    strength: f64,
    magnitude: usize,
    interpolation: Interpolation,
    fill: [u8; 3],
}

/// One change with its strength. If the strength can have a sign, both signs are equally likely.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RandAugmentOp {
    /// No change.
    Identity,
    /// Each row moves this many columns further than the row above it: up to 0.3 either way.
    ShearX(f64),
    /// Each column moves this many rows further than the column to its left: up to 0.3 either way.
    ShearY(f64),
    /// The image moves by whole columns: up to 150/331 of the width either way.
    TranslateX(f64),
    /// The image moves by whole rows: up to 150/331 of the height either way.
    TranslateY(f64),
    /// The image turns counterclockwise by this many degrees: up to 30 either way.
    Rotate(f64),
    /// A factor: 0.1 to 1.9.
    Brightness(f32),
    /// A factor of saturation: 0.1 to 1.9.
    Color(f32),
    /// A factor: 0.1 to 1.9.
    Contrast(f32),
    /// A factor: 0.1 to 1.9. Below 1 it blurs.
    Sharpness(f32),
    /// The bits to keep of each byte: 8 to 4.
    Posterize(u8),
    /// Bytes of this value or more are inverted: 255 to 0.
    Solarize(f32),
    /// Each channel is stretched to the whole range of 0 to 255.
    AutoContrast,
    /// Each channel's histogram is made flat.
    Equalize,
}

type Make = fn(&RandAugment, [u32; 2], &mut KeyedRng) -> RandAugmentOp;

/// Makes each operation, for an image of this width and height.
const OPS: [Make; 14] = {
    use RandAugmentOp as Op;
    [
        |_, _, _| Op::Identity,
        |of, _, rng| Op::ShearX(of.signed(0.3, rng)),
        |of, _, rng| Op::ShearY(of.signed(0.3, rng)),
        |of, [width, _], rng| Op::TranslateX(of.signed(150.0 / 331.0 * f64::from(width), rng).trunc()),
        |of, [_, height], rng| Op::TranslateY(of.signed(150.0 / 331.0 * f64::from(height), rng).trunc()),
        |of, _, rng| Op::Rotate(of.signed(30.0, rng)),
        |of, _, rng| Op::Brightness(1.0 + of.signed(0.9, rng) as f32),
        |of, _, rng| Op::Color(1.0 + of.signed(0.9, rng) as f32),
        |of, _, rng| Op::Contrast(1.0 + of.signed(0.9, rng) as f32),
        |of, _, rng| Op::Sharpness(1.0 + of.signed(0.9, rng) as f32),
        |of, _, _| Op::Posterize(8 - (4.0 * of.strength).round_ties_even() as u8),
        |of, _, _| Op::Solarize((255.0 * (1.0 - of.strength)) as f32),
        |_, _, _| Op::AutoContrast,
        |_, _, _| Op::Equalize,
    ]
};

impl RandAugment {
    const BINS: usize = 31;

    /// Makes `num_ops` changes of a magnitude from 0 to 30. torchvision's defaults are 2 and 9.
    ///
    /// # Errors
    /// If the magnitude is beyond 30.
    pub fn new(num_ops: usize, magnitude: usize) -> Result<Self, Error> {
        let plain = Self { num_ops, strength: 0.0, magnitude: 0, interpolation: Interpolation::Nearest, fill: [0; 3] };
        plain.at("RandAugment::new", magnitude, Self::BINS)
    }

    /// Sets the number of steps of the strengths. The magnitude is one of these steps, counted from 0. Default: 31.
    ///
    /// # Errors
    /// If the magnitude is not one of the steps, or if there are fewer than two steps.
    pub fn num_magnitude_bins(self, bins: usize) -> Result<Self, Error> {
        self.at("RandAugment::num_magnitude_bins", self.magnitude, bins)
    }

    fn at(mut self, option: &'static str, magnitude: usize, bins: usize) -> Result<Self, Error> {
        if bins < 2 || magnitude >= bins {
            let problem = format!("magnitude {magnitude} does not exist with {bins} bins");
            return Err(Error::config(
                option,
                problem,
                "give a magnitude below the number of bins, and at least two bins",
            ));
        }
        self.strength = magnitude as f64 / (bins - 1) as f64;
        self.magnitude = magnitude;
        Ok(self)
    }

    /// Sets the interpolation of shears, shifts and rotations: nearest (the default) or bilinear.
    ///
    /// # Errors
    /// If it is neither of them.
    pub fn interpolation(mut self, interpolation: Interpolation) -> Result<Self, Error> {
        if !matches!(interpolation, Interpolation::Nearest | Interpolation::Bilinear) {
            let problem = format!("{interpolation:?} is not made for rotations");
            return Err(Error::config("RandAugment::interpolation", problem, "give Nearest or Bilinear"));
        }
        self.interpolation = interpolation;
        Ok(self)
    }

    /// Sets the colour of what comes from outside the image. Default: black.
    pub fn fill(mut self, colour: [u8; 3]) -> Self {
        self.fill = colour;
        self
    }

    /// Draws the changes to make to an image of `width` x `height`, in their order.
    pub fn draw(&self, width: u32, height: u32, rng: &mut KeyedRng) -> Vec<RandAugmentOp> {
        (0..self.num_ops).filter_map(|_| Some(OPS.choose(rng)?(self, [width, height], rng))).collect()
    }

    fn signed(&self, most: f64, rng: &mut KeyedRng) -> f64 {
        let amount = self.strength * most;
        if rng.random_bool(0.5) { -amount } else { amount }
    }

    pub(crate) fn change(&self, image: &mut RgbImage, rng: &mut KeyedRng) -> Result<(), VisionError> {
        for op in self.draw(image.width(), image.height(), rng) {
            self.run(op, image);
        }
        Ok(())
    }

    fn run(&self, op: RandAugmentOp, image: &mut RgbImage) {
        use RandAugmentOp as Op;
        let same = Inverse::IDENTITY;
        // Shears keep the top left corner in place, as in AutoAugment, not the middle.
        let (half_width, half_height) = (f64::from(image.width()) / 2.0, f64::from(image.height()) / 2.0);
        let inverse = match op {
            Op::ShearX(by) => Inverse { xy: by, x0: by * half_height, ..same },
            Op::ShearY(by) => Inverse { yx: by, y0: by * half_width, ..same },
            Op::TranslateX(by) => Inverse { x0: -by, ..same },
            Op::TranslateY(by) => Inverse { y0: -by, ..same },
            Op::Rotate(degrees) => Inverse::rotation(degrees),
            Op::Identity => return,
            Op::Brightness(factor) => return Adjust::Brightness(factor).apply(image),
            Op::Color(factor) => return Adjust::Saturation(factor).apply(image),
            Op::Contrast(factor) => return Adjust::Contrast(factor).apply(image),
            Op::Sharpness(factor) => return tone::sharpness(image, factor),
            Op::Posterize(bits) => return tone::posterize(image, bits),
            Op::Solarize(threshold) => return tone::solarize(image, threshold),
            Op::AutoContrast => return tone::auto_contrast(image),
            Op::Equalize => return tone::equalize(image),
        };
        let size = Size { width: image.width(), height: image.height() };
        *image = warp(image, size, inverse, self.interpolation, self.fill);
    }
}

impl Default for RandAugment {
    /// Two operations of magnitude 9 of 31.
    fn default() -> Self {
        Self { num_ops: 2, strength: 9.0 / 30.0, magnitude: 9, interpolation: Interpolation::Nearest, fill: [0; 3] }
    }
}
