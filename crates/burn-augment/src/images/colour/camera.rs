//! What cameras and their files do to an image: gamma, noise, the losses of JPEG.

use super::bytes;
use crate::{
    error::Error,
    images::{
        error::VisionError,
        parameters::{Interval, checked, normals},
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};
use image::{
    DynamicImage, ImageResult, RgbImage,
    codecs::jpeg::{JpegDecoder, JpegEncoder},
};
use rand::RngExt;
use std::{io::Cursor, ops::RangeInclusive};

/// Raises each byte, as a share of 255, to a random power. A power below 1 makes an image lighter.
///
/// ```
/// use burn_augment::{augment::RandomApply, images::RandomGamma};
///
/// let exposure = RandomApply::new(0.5, RandomGamma::new(70.0, 150.0)?)?; // a power from 0.7 to 1.5
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// It works as albumentations' `RandomGamma`, with bytes rounded down, but every time. torchvision has only the function
/// `adjust_gamma`.
#[derive(Debug, Clone, Copy)]
pub struct RandomGamma(Interval);

impl RandomGamma {
    /// Sets the least and the greatest power, in percent. albumentations' defaults are 80 and 120.
    ///
    /// # Errors
    /// Unless `1 <= low <= high <= 10000`.
    pub fn new(low: f64, high: f64) -> Result<Self, Error> {
        Ok(Self(Interval::checked("RandomGamma::new", low, high, 1.0, 10_000.0)?))
    }

    /// Draws the power.
    pub fn draw(&self, rng: &mut KeyedRng) -> f64 {
        self.0.uniform(rng) / 100.0
    }
}

impl Transform for RandomGamma {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let power = self.draw(rng);
        let table = std::array::from_fn(|byte| (255.0 * libm::pow(byte as f64 / 255.0, power)) as u8);
        image.repaint(&mut |image| bytes::map(image, &table))
    }
}

/// Adds a random number of the normal distribution to each byte of every image.
///
/// ```
/// use burn_augment::images::GaussianNoise;
///
/// let grain = GaussianNoise::new(0.0, 0.05)?; // a standard deviation of 12.75 levels
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// It works as torchvision's `GaussianNoise` with its default `clip=True`: noise is cut to whole levels, and bytes stay
/// from 0 to 255. A second image gets the same noise.
#[derive(Debug, Clone, Copy)]
pub struct GaussianNoise {
    mean: f64,
    sigma: f64,
}

impl GaussianNoise {
    /// Sets the mean and the standard deviation, where 1 is 255 levels. torchvision's defaults are 0 and 0.1.
    ///
    /// # Errors
    /// If the mean is not from -1 to 1, or the standard deviation not from 0 to 100.
    pub fn new(mean: f64, sigma: f64) -> Result<Self, Error> {
        let mean = checked("GaussianNoise::new", mean, -1.0, 1.0)?;
        Ok(Self { mean, sigma: checked("GaussianNoise::new", sigma, 0.0, 100.0)? })
    }
}

impl Transform for GaussianNoise {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        let level = |normal: f64| (255.0 * (self.mean + self.sigma * normal)) as i16;
        let pairs = (3 * width as usize * height as usize).div_ceil(2);
        let noise: Vec<i16> = (0..pairs).flat_map(|_| normals(rng).map(level)).collect();
        image.repaint(&mut |image| {
            for (byte, level) in image.iter_mut().zip(&noise) {
                *byte = level.saturating_add((*byte).into()).clamp(0, 255) as u8;
            }
        })
    }
}

/// Makes every image look as if it were saved as a JPEG of a random quality.
///
/// ```
/// use burn_augment::images::JPEG;
///
/// let saved = JPEG::new(30..=90)?; // 50..=50 is always 50
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// It works as torchvision's `JPEG`, by the encoder and the decoder of the crate [`image`], with or without the feature
/// `turbo`. Colours keep all columns and rows; torchvision's lose half of both.
#[derive(Debug, Clone, Copy)]
pub struct JPEG(Interval);

impl JPEG {
    /// Sets the least and the greatest quality. All whole numbers between them are equally likely.
    ///
    /// # Errors
    /// If the range is empty, or reaches beyond 1 to 100.
    pub fn new(quality: RangeInclusive<u8>) -> Result<Self, Error> {
        let (low, high) = quality.into_inner();
        Ok(Self(Interval::checked("JPEG::new", low.into(), high.into(), 1.0, 100.0)?))
    }

    /// Draws the quality.
    pub fn draw(&self, rng: &mut KeyedRng) -> u8 {
        rng.random_range(self.0.low as u8..=self.0.high as u8)
    }
}

impl Transform for JPEG {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (quality, mut done) = (self.draw(rng), Ok(()));
        image.repaint(&mut |image| save(image, quality).unwrap_or_else(|error| done = Err(error)))?;
        done.map_err(VisionError::Decode)
    }
}

/// Writes a file, and reads it.
fn save(image: &mut RgbImage, quality: u8) -> ImageResult<()> {
    let mut file = Vec::new();
    JpegEncoder::new_with_quality(&mut file, quality).encode_image(image)?;
    *image = DynamicImage::from_decoder(JpegDecoder::new(Cursor::new(file))?)?.into_rgb8();
    Ok(())
}
