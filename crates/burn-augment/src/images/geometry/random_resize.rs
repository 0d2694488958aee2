//! Resizing whole images to random sizes.

use super::{
    pixels::Interpolation,
    rect::CropBox,
    resize::{Resize, Sides, whole_size},
};
use crate::{
    error::Error,
    images::{
        error::VisionError,
        parameters::{Interval, MAX_SIDE, Size},
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};
use rand::{RngExt, seq::IndexedRandom};

/// Resizes every image to a random size, and keeps its proportions.
///
/// ```
/// use burn_augment::{Augment, KeyedRng, images::RandomResize};
///
/// let detr = RandomResize::shortest_size(&[480, 512, 544, 576, 608], Some(1333))?;
/// let image = detr.apply(image::RgbImage::new(500, 400), &mut KeyedRng::for_order(1, 0))?;
/// assert!([480, 512, 544, 576, 608].contains(&image.height()));
/// let large_jitter = RandomResize::scale_jitter(1024, 0.1, 2.0)?; // then a `RandomCrop` of 1024 that pads
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// It works as torchvision's `RandomResize`, `RandomShortestSize` and `ScaleJitter`, and makes at least one pixel. The
/// images have different sizes: crop or pad them before they become a batch.
#[derive(Debug, Clone)]
#[doc(alias = "RandomShortestSize")]
#[doc(alias = "ScaleJitter")]
pub struct RandomResize {
    scale: RandomScale,
    interpolation: Interpolation,
}

#[derive(Debug, Clone)]
enum RandomScale {
    /// The shorter side is from the first number to below the second.
    Between(u32, u32),
    /// The shorter side is one of these, if the longer one is not above the limit.
    Among(Vec<u32>, Option<u32>),
    /// The image that fits the size is scaled by a factor.
    Fitted(Size, Interval),
}

impl RandomResize {
    /// Resizes the shorter side to a size from `min_size` to below `max_size`, all equally likely, and the longer by
    /// the same factor: torchvision's `RandomResize`.
    ///
    /// # Errors
    /// Unless `0 < min_size < max_size <= 65,535`.
    pub fn new(min_size: u32, max_size: u32) -> Result<Self, Error> {
        if min_size == 0 || min_size >= max_size || max_size > MAX_SIDE {
            let problem = format!("no size is from {min_size} to below {max_size}");
            let advice = format!("give two sizes from 1 to {MAX_SIDE}, the smaller first");
            return Err(Error::config("RandomResize::new", problem, advice));
        }
        Ok(Self::by(RandomScale::Between(min_size, max_size)))
    }

    /// Resizes the shorter side to one of `sizes`, all equally likely, and the longer by the same factor. If the
    /// longer side would exceed `max_size`, it gets that size: torchvision's `RandomShortestSize`. As there, floats are
    /// rounded down, so a side of 11 pixels that shall have 15 gets 14.
    ///
    /// # Errors
    /// If there are no sizes, or one is 0 or beyond 65,535.
    pub fn shortest_size(sizes: &[u32], max_size: Option<u32>) -> Result<Self, Error> {
        const OPTION: &str = "RandomResize::shortest_size";
        if sizes.is_empty() {
            return Err(Error::config(OPTION, "there are no sizes", "give one or more"));
        }
        sizes.iter().chain(&max_size).try_for_each(|side| Size::from(*side).checked(OPTION).map(|_| ()))?;
        Ok(Self::by(RandomScale::Among(sizes.into(), max_size)))
    }

    /// Resizes to the largest size that fits `target_size`, times a factor that is uniform from `low` to `high`:
    /// torchvision's `ScaleJitter`, whose defaults are 0.1 and 2.
    ///
    /// `target_size` is one side or `[height, width]`. torchvision's pair is the width and the height.
    ///
    /// # Errors
    /// If a side is 0, or beyond 65,535, or unless `0 < low <= high`.
    pub fn scale_jitter(target_size: impl Into<Size>, low: f64, high: f64) -> Result<Self, Error> {
        const OPTION: &str = "RandomResize::scale_jitter";
        let size = target_size.into().checked(OPTION)?;
        Ok(Self::by(RandomScale::Fitted(size, Interval::checked(OPTION, low, high, f64::MIN_POSITIVE, f64::MAX)?)))
    }

    fn by(scale: RandomScale) -> Self {
        Self { scale, interpolation: Interpolation::default() }
    }

    /// Sets the interpolation. Default: bilinear.
    pub fn interpolation(mut self, interpolation: Interpolation) -> Self {
        self.interpolation = interpolation;
        self
    }

    /// Draws the size that an image of `width` x `height`, both above 0, gets.
    ///
    /// # Errors
    /// If a side would be beyond 65,535.
    pub fn draw(&self, width: u32, height: u32, rng: &mut KeyedRng) -> Result<Size, VisionError> {
        let [across, down] = [width, height].map(f64::from);
        let factor = match &self.scale {
            RandomScale::Between(low, high) => {
                return Resize::by(Sides::Shorter(rng.random_range(*low..*high), u32::MAX)).size((width, height));
            }
            RandomScale::Among(sizes, most) => {
                let factor = sizes.choose(rng).copied().map_or(1.0, f64::from) / across.min(down);
                most.map_or(factor, |most| factor.min(f64::from(most) / across.max(down)))
            }
            RandomScale::Fitted(size, factors) => size.factor_for((width, height)) * factors.uniform(rng),
        };
        whole_size([across * factor, down * factor], (width, height))
    }
}

impl Transform for RandomResize {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        let size = self.draw(width, height, rng)?;
        image.resized_crop(CropBox::whole((width, height)), size, self.interpolation)
    }
}
