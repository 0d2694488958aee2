//! The crop of ImageNet training.

use super::{pixels::Interpolation, rect::CropBox};
use crate::{
    error::Error,
    images::{
        error::VisionError,
        parameters::{Interval, Size, round},
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};
use rand::RngExt;

/// Cuts a part of random size, proportions and place, and resizes it.
///
/// ```
/// use burn_augment::images::RandomResizedCrop;
///
/// let imagenet = RandomResizedCrop::new(224)?; // 8 to 100 % of the area, 3:4 to 4:3
/// let gentle = RandomResizedCrop::new([224, 320])?.scale(0.5, 1.0)?;
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// It works as torchvision's `RandomResizedCrop`. The share of the area is uniform in `scale`. The logarithm of width /
/// height is uniform between those of `ratio`. The place is uniform. If ten draws do not fit, it takes the largest part
/// in the centre with proportions within `ratio`.
#[derive(Debug, Clone, Copy)]
pub struct RandomResizedCrop {
    size: Size,
    scale: Interval,
    ratio: Interval,
    interpolation: Interpolation,
}

impl RandomResizedCrop {
    /// Makes images of `size`, which is one side or `[height, width]`.
    ///
    /// # Errors
    /// If a side is 0, or beyond 65,535.
    pub fn new(size: impl Into<Size>) -> Result<Self, Error> {
        Ok(Self {
            size: size.into().checked("RandomResizedCrop::new")?,
            scale: Interval::new(0.08, 1.0),
            ratio: Interval::new(3.0 / 4.0, 4.0 / 3.0),
            interpolation: Interpolation::Bilinear,
        })
    }

    /// Sets the least and the greatest share of the image's area. Default: 0.08 and 1.
    ///
    /// # Errors
    /// Unless `0 < low <= high <= 1`.
    pub fn scale(mut self, low: f64, high: f64) -> Result<Self, Error> {
        self.scale = Interval::checked("RandomResizedCrop::scale", low, high, f64::MIN_POSITIVE, 1.0)?;
        Ok(self)
    }

    /// Sets the least and the greatest width / height. Default: 3/4 and 4/3.
    ///
    /// # Errors
    /// Unless `0 < low <= high`.
    pub fn ratio(mut self, low: f64, high: f64) -> Result<Self, Error> {
        self.ratio = Interval::checked("RandomResizedCrop::ratio", low, high, f64::MIN_POSITIVE, f64::MAX)?;
        Ok(self)
    }

    /// Sets the interpolation. Default: bilinear.
    pub fn interpolation(mut self, interpolation: Interpolation) -> Self {
        self.interpolation = interpolation;
        self
    }

    /// Draws the part to cut from an image of `width` x `height`, both above 0. The part lies within the image.
    pub fn draw(&self, width: u32, height: u32, rng: &mut KeyedRng) -> CropBox {
        let area = f64::from(width) * f64::from(height);
        for _ in 0..10 {
            let part = area * self.scale.uniform(rng);
            let ratio = self.ratio.log_uniform(rng);
            let (across, down) = (round((part * ratio).sqrt()), round((part / ratio).sqrt()));
            if (1..=width).contains(&across) && (1..=height).contains(&down) {
                let top = rng.random_range(0..=height - down);
                let left = rng.random_range(0..=width - across);
                return CropBox { left: left.into(), top: top.into(), width: across, height: down };
            }
        }
        let whole = f64::from(width) / f64::from(height);
        // At least one pixel: with a ratio of 1:1000, a line of 100 pixels rounds to nothing.
        let (across, down) = if whole < self.ratio.low {
            (width, round(f64::from(width) / self.ratio.low).clamp(1, height))
        } else if whole > self.ratio.high {
            (round(f64::from(height) * self.ratio.high).clamp(1, width), height)
        } else {
            (width, height)
        };
        let (left, top) = ((width - across) / 2, (height - down) / 2);
        CropBox { left: left.into(), top: top.into(), width: across, height: down }
    }
}

impl Transform for RandomResizedCrop {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        image.resized_crop(self.draw(width, height, rng), self.size, self.interpolation)
    }
}
