//! The changes of colour of SSD's training.

use super::{
    adjust::Adjust,
    jitter::{ColorJitter, permute},
};
use crate::{
    augment::probability,
    error::Error,
    images::{
        error::VisionError,
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};
use rand::{RngExt, seq::SliceRandom};

/// Changes brightness, contrast, saturation and hue, and permutes the channels, each with a probability.
///
/// ```
/// use burn_augment::images::{ColorJitter, RandomPhotometricDistort};
///
/// let ssd = RandomPhotometricDistort::new(0.5)?;
/// let strong = ColorJitter::new().brightness(0.3)?.contrast((0.4, 1.6))?.saturation((0.4, 1.6))?.hue(0.1)?;
/// let own = ssd.ranges(strong);
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// It works as `RandomPhotometricDistort` of torchvision's `transforms.v2`. The contrast changes first or last after
/// the brightness, equally likely.
#[derive(Debug, Clone)]
pub struct RandomPhotometricDistort {
    p: f64,
    ranges: ColorJitter,
}

impl RandomPhotometricDistort {
    /// Makes each change with probability `p`; torchvision's default is 0.5.
    ///
    /// # Errors
    /// If `p` is not from 0 to 1.
    pub fn new(p: f64) -> Result<Self, Error> {
        let ranges = ColorJitter::new().brightness(0.125)?.contrast(0.5)?.saturation(0.5)?.hue(0.05)?;
        Ok(Self { p: probability("RandomPhotometricDistort::new", p)?, ranges })
    }

    /// Sets the ranges of the changes of colour. Default: 0.125 around 1 for the brightness, 0.5 around 1 for contrast
    /// and saturation, and 0.05 around 0 for the hue.
    pub fn ranges(mut self, ranges: ColorJitter) -> Self {
        self.ranges = ranges;
        self
    }

    /// Draws the changes to make, in their order, and the channel that each channel becomes after them.
    pub fn draw(&self, rng: &mut KeyedRng) -> (Vec<Adjust>, [usize; 3]) {
        let [brightness, contrast, saturation, hue] = self.ranges.draw_each(self.p, rng);
        let (early, late) = if rng.random_bool(0.5) { (contrast, None) } else { (None, contrast) };
        let mut channels = [0, 1, 2];
        if rng.random_bool(self.p) {
            channels.shuffle(rng);
        }
        ([brightness, early, saturation, hue, late].into_iter().flatten().collect(), channels)
    }
}

impl Transform for RandomPhotometricDistort {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (changes, channels) = self.draw(rng);
        changes.into_iter().try_for_each(|change| image.adjust(change))?;
        if channels == [0, 1, 2] {
            return Ok(()); // an image that is not decoded stays so
        }
        permute(image, channels)
    }
}
