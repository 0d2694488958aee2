//! Random padding, so that objects become smaller.

use super::Pad;
use crate::{
    augment::probability,
    error::Error,
    images::{
        error::VisionError,
        parameters::Interval,
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};
use rand::RngExt;

/// Puts an image at a random place of a larger canvas, with a probability.
///
/// ```
/// use burn_augment::images::{RandomIoUCrop, RandomZoomOut, Resize};
///
/// let ssd = (RandomZoomOut::default().fill([123, 117, 104]), RandomIoUCrop::new(), Resize::exact(300)?);
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// It works as torchvision's `RandomZoomOut`. The canvas has the image's proportions. Its sides are the image's times a
/// factor that is uniform in `side_range`, rounded down.
#[derive(Debug, Clone, Copy)]
pub struct RandomZoomOut {
    p: f64,
    side_range: Interval,
    fill: [u8; 3],
}

impl RandomZoomOut {
    /// Enlarges the canvas with probability `p`.
    ///
    /// # Errors
    /// If `p` is not from 0 to 1.
    pub fn new(p: f64) -> Result<Self, Error> {
        Ok(Self { p: probability("RandomZoomOut::new", p)?, ..Self::default() })
    }

    /// Sets the least and the greatest factor of the sides. Default: 1 and 4.
    ///
    /// # Errors
    /// Unless `1 <= low <= high`.
    pub fn side_range(mut self, low: f64, high: f64) -> Result<Self, Error> {
        self.side_range = Interval::checked("RandomZoomOut::side_range", low, high, 1.0, f64::MAX)?;
        Ok(self)
    }

    /// Sets the colour around the image. Default: black.
    pub fn fill(mut self, colour: [u8; 3]) -> Self {
        self.fill = colour;
        self
    }

    /// Draws the padding of an image of `width` x `height`: left, top, right, bottom. `None` leaves it unchanged.
    pub fn draw(&self, width: u32, height: u32, rng: &mut KeyedRng) -> Option<[u32; 4]> {
        if !rng.random_bool(self.p) {
            return None;
        }
        let factor = self.side_range.uniform(rng);
        let [across, down] = [width, height].map(|side| (f64::from(side) * factor) as u32 - side);
        let [left, top] = [across, down].map(|spare| (f64::from(spare) * rng.random::<f64>()) as u32);
        Some([left, top, across - left, down - top])
    }
}

impl Default for RandomZoomOut {
    fn default() -> Self {
        Self { p: 0.5, side_range: Interval::new(1.0, 4.0), fill: [0; 3] }
    }
}

impl Transform for RandomZoomOut {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        let Some(padding) = self.draw(width, height, rng) else { return Ok(()) };
        Pad::each(padding).fill(self.fill).change(image, rng)
    }
}
