//! A random change of shape that is smooth, as if the image were seen through water.

use super::{
    colour::blur,
    error::VisionError,
    geometry::{Interpolation, Mapping, warp_options},
    parameters::{Size, checked},
    picture::{Picture, Transform},
};
use crate::{error::Error, rng::KeyedRng};
use rand::RngExt;

/// Moves each pixel by a random distance, which differs little from that of its neighbours.
///
/// ```
/// use burn_augment::images::ElasticTransform;
///
/// let wave = ElasticTransform::new(120.0, 6.0)?.fill([127; 3]);
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// It works as torchvision's `ElasticTransform`: uniform noise is blurred by a Gaussian with the standard deviation
/// `sigma`, and then multiplied. One alpha and one sigma are for both directions. With torchvision's defaults most shifts
/// are a pixel or less in each direction.
///
/// Boxes and points move back by the shift of the pixel at their place, which is near the right place while shifts
/// differ little. torchvision rounds a place to its pixel first; here it keeps its fraction. Bilinear borders differ
/// from torchvision's, as those of a [`RandomRotation`](super::RandomRotation) do.
#[derive(Debug, Clone, Copy)]
pub struct ElasticTransform {
    alpha: f64,
    sigma: f64,
    interpolation: Interpolation,
    fill: [u8; 3],
}

impl ElasticTransform {
    /// Sets the strength and the smoothness. `alpha` is twice the longest shift, in pixels, before the noise is blurred.
    /// `sigma` is the standard deviation of the blur, in pixels; 0 does not blur. torchvision's defaults are 50 and 5.
    ///
    /// # Errors
    /// If alpha is not from 0 to 65,535, or sigma not from 0 to 1000.
    pub fn new(alpha: f64, sigma: f64) -> Result<Self, Error> {
        let alpha = checked("ElasticTransform::new", alpha, 0.0, 65_535.0)?;
        let sigma = checked("ElasticTransform::new", sigma, 0.0, 1000.0)?;
        Ok(Self { alpha, sigma, interpolation: Interpolation::Bilinear, fill: [0; 3] })
    }

    /// Draws for each pixel of an image of `width` x `height`, both above 0, row by row, how far it comes from: pixels to the right and
    /// below.
    pub fn draw(&self, width: u32, height: u32, rng: &mut KeyedRng) -> Vec<[f32; 2]> {
        let count = width as usize * height as usize;
        let mut shifts: Vec<_> = (0..count).map(|_| [(); 2].map(|()| rng.random_range(-1.0..1.0f32))).collect();
        if self.sigma > 0.0 {
            let side = Size::from((8.0 * self.sigma + 1.0) as u32 | 1);
            blur(&mut shifts, (width, height), side, self.sigma, |shift| shift, |shift| shift);
        }
        shifts.as_flattened_mut().iter_mut().for_each(|by| *by *= (self.alpha / 2.0) as f32);
        shifts
    }
}

warp_options!(ElasticTransform);

impl Transform for ElasticTransform {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        let shifts = self.draw(width, height, rng);
        image.warp(Size { width, height }, Mapping::Shifts(&shifts), self.interpolation, self.fill)
    }
}
