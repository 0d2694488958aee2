//! Resizing whole images.

use super::{
    pixels::{Interpolation, resized},
    rect::{CropBox, Rect},
};
use crate::{
    error::Error,
    images::{
        error::VisionError,
        parameters::{MAX_SIDE, Size},
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};
use image::RgbImage;

/// Resizes every image. Nothing is random.
///
/// ```
/// use burn_augment::images::Resize;
/// use image::RgbImage;
///
/// let image = Resize::shorter_side(256)?.resize(&RgbImage::new(500, 375))?; // by itself, or as an augmentation
/// assert_eq!(image.dimensions(), (341, 256));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It works as torchvision's `Resize`, without its `max_size`.
#[derive(Debug, Clone, Copy)]
pub struct Resize {
    size: Size,
    /// Whether the shorter side gets this size, and the longer side follows.
    by_shorter_side: bool,
    interpolation: Interpolation,
}

impl Resize {
    /// Resizes to `size`, which is one side or `[height, width]`, without keeping the proportions.
    ///
    /// # Errors
    /// If a side is 0, or beyond 65,535.
    pub fn exact(size: impl Into<Size>) -> Result<Self, Error> {
        let size = size.into().checked("Resize::exact")?;
        Ok(Self { size, by_shorter_side: false, interpolation: Interpolation::default() })
    }

    /// Resizes the shorter side to `side`, and the longer by the same factor, rounded down: torchvision's
    /// `Resize(side)`.
    ///
    /// # Errors
    /// If the side is 0, or beyond 65,535.
    pub fn shorter_side(side: u32) -> Result<Self, Error> {
        let size = Size::from(side).checked("Resize::shorter_side")?;
        Ok(Self { size, by_shorter_side: true, interpolation: Interpolation::default() })
    }

    /// Sets the interpolation. Default: bilinear.
    pub fn interpolation(mut self, interpolation: Interpolation) -> Self {
        self.interpolation = interpolation;
        self
    }

    /// Returns an image of the new size.
    ///
    /// # Errors
    /// If the image has no pixels, or its longer side would grow beyond 65,535.
    pub fn resize(&self, image: &RgbImage) -> Result<RgbImage, VisionError> {
        if image.is_empty() {
            return Err(VisionError::NoPixels);
        }
        resized(image, Rect::whole(image.dimensions()), self.size(image.dimensions())?, self.interpolation)
    }

    /// The size that an image of `width` x `height` gets.
    fn size(&self, (width, height): (u32, u32)) -> Result<Size, VisionError> {
        if !self.by_shorter_side {
            return Ok(self.size);
        }
        let longer = u64::from(self.size.width) * u64::from(width.max(height)) / u64::from(width.min(height));
        // A line that is one pixel wide would become an image of gigabytes.
        let longer = u32::try_from(longer).ok().filter(|side| *side <= MAX_SIDE);
        let longer = longer.ok_or(VisionError::ResultTooLarge { width, height, limit: MAX_SIDE })?;
        Ok(if width < height { Size { height: longer, ..self.size } } else { Size { width: longer, ..self.size } })
    }
}

impl Transform for Resize {
    fn change(&self, image: &mut impl Picture, _: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        let whole = CropBox { left: 0, top: 0, width, height };
        image.resized_crop(whole, self.size((width, height))?, self.interpolation)
    }
}
