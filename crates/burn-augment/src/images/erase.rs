//! Random erasing of a rectangle.

use super::{
    error::VisionError,
    parameters::{Interval, round},
    picture::{Picture, Transform, within},
};
use crate::{
    augment::probability,
    error::Error,
    images::geometry::{CropBox, rows_of},
    rng::KeyedRng,
};
use rand::{Rng, RngExt};

/// What fills an erased rectangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Erased {
    /// One colour. torchvision erases after normalising, where 0 is the mean: to get the same, set the mean colour of
    /// the data.
    Color([u8; 3]),
    /// Each byte is random, uniform from 0 to 255.
    Noise,
}

/// Erases a random rectangle, with a probability.
///
/// ```
/// use burn_augment::images::{Erased, RandomErasing};
///
/// let erase = RandomErasing::new(0.25)?.scale(0.02, 0.2)?.value(Erased::Color([124, 116, 104])); // ImageNet's mean
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// It works as torchvision's `RandomErasing` (and Zhong et al., "Random Erasing Data Augmentation", 2017). The share of
/// the area is uniform in `scale`. The logarithm of height / width is uniform between those of `ratio`. The place is
/// uniform. If ten draws give no rectangle that is smaller than the image in both directions, nothing is erased. The
/// noise differs: its bytes are uniform, not normal.
#[derive(Debug, Clone, Copy)]
pub struct RandomErasing {
    p: f64,
    scale: Interval,
    ratio: Interval,
    pub(crate) value: Erased,
}

impl RandomErasing {
    /// Erases with probability `p`. torchvision's default is 0.5.
    ///
    /// # Errors
    /// If `p` is not from 0 to 1.
    pub fn new(p: f64) -> Result<Self, Error> {
        Ok(Self { p: probability("RandomErasing::new", p)?, ..Self::default() })
    }

    /// Sets the least and the greatest share of the image's area. Default: 0.02 and 0.33.
    ///
    /// # Errors
    /// Unless `0 <= low <= high <= 1`.
    pub fn scale(mut self, low: f64, high: f64) -> Result<Self, Error> {
        self.scale = Interval::checked("RandomErasing::scale", low, high, 0.0, 1.0)?;
        Ok(self)
    }

    /// Sets the least and the greatest height / width. Default: 0.3 and 3.3.
    ///
    /// # Errors
    /// Unless `0 < low <= high`.
    pub fn ratio(mut self, low: f64, high: f64) -> Result<Self, Error> {
        self.ratio = Interval::checked("RandomErasing::ratio", low, high, f64::MIN_POSITIVE, f64::MAX)?;
        Ok(self)
    }

    /// Sets what fills the rectangle. Default: black.
    pub fn value(mut self, value: Erased) -> Self {
        self.value = value;
        self
    }

    /// Draws the part to erase in an image of `width` x `height`. `None` erases nothing.
    pub fn draw(&self, width: u32, height: u32, rng: &mut KeyedRng) -> Option<CropBox> {
        if !rng.random_bool(self.p) {
            return None;
        }
        let area = f64::from(width) * f64::from(height);
        for _ in 0..10 {
            let part = area * self.scale.uniform(rng);
            let ratio = self.ratio.log_uniform(rng);
            let (down, across) = (round((part * ratio).sqrt()), round((part / ratio).sqrt()));
            if down < height && across < width {
                let top = rng.random_range(0..=height - down);
                let left = rng.random_range(0..=width - across);
                return Some(CropBox { left: left.into(), top: top.into(), width: across, height: down });
            }
        }
        None
    }
}

impl Transform for RandomErasing {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        let Some(part) = self.draw(width, height, rng) else { return Ok(()) };
        match self.value {
            Erased::Color(colour) => image.erase(part, colour),
            Erased::Noise => {
                let part = within(part, (width, height))?;
                let mut noise = vec![vec![0; 3 * part.width as usize]; part.height as usize];
                noise.iter_mut().for_each(|row| rng.fill_bytes(row));
                image.repaint(&mut |image| {
                    rows_of(image, part).zip(&noise).for_each(|(row, noise)| row.copy_from_slice(noise));
                })
            }
        }
    }
}

impl Default for RandomErasing {
    fn default() -> Self {
        Self { p: 0.5, scale: Interval::new(0.02, 0.33), ratio: Interval::new(0.3, 3.3), value: Erased::Color([0; 3]) }
    }
}
