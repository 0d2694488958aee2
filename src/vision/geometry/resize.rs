//! Resizing whole images.

use super::{
    pixels::{Interpolation, resized},
    rect::{CropBox, Rect},
};
use crate::{
    fault::Error,
    rng::KeyedRng,
    vision::{
        error::VisionError,
        parameters::{MAX_SIDE, Size},
        picture::{Picture, Transform},
    },
};
use image::RgbImage;

/// Resizes every image. Nothing is random.
///
/// ```
/// use burn_pinned::vision::Resize;
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
    to: ResizeTarget,
    interpolation: Interpolation,
}

#[derive(Debug, Clone, Copy)]
enum ResizeTarget {
    Exact(Size),
    Shorter(u32),
}

impl Resize {
    /// Resizes to `size`, which is one side or `[height, width]`, whatever the proportions.
    ///
    /// # Errors
    /// If a side is 0, or beyond 65,535.
    pub fn exact(size: impl Into<Size>) -> Result<Self, Error> {
        Ok(Self {
            to: ResizeTarget::Exact(size.into().checked("Resize::exact")?),
            interpolation: Interpolation::default(),
        })
    }

    /// Resizes the shorter side to `side`, and the longer by the same factor, rounded down: torchvision's
    /// `Resize(side)`.
    ///
    /// # Errors
    /// If the side is 0, or beyond 65,535.
    pub fn shorter_side(side: u32) -> Result<Self, Error> {
        Size::from(side).checked("Resize::shorter_side")?;
        Ok(Self { to: ResizeTarget::Shorter(side), interpolation: Interpolation::default() })
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
        Ok(match self.to {
            ResizeTarget::Exact(size) => size,
            ResizeTarget::Shorter(side) => {
                let longer = |long: u32, short: u32| -> Result<u32, VisionError> {
                    let side = u64::from(side) * u64::from(long) / u64::from(short);
                    // A line that is one pixel wide would become an image of gigabytes.
                    let fits = u32::try_from(side).ok().filter(|side| *side <= MAX_SIDE);
                    fits.ok_or(VisionError::ResultTooLarge { width, height, limit: MAX_SIDE })
                };
                if width < height {
                    Size { width: side, height: longer(height, width)? }
                } else {
                    Size { width: longer(width, height)?, height: side }
                }
            }
        })
    }
}

impl Transform for Resize {
    fn change(&self, image: &mut impl Picture, _: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        let whole = CropBox { left: 0, top: 0, width, height };
        image.resized_crop(whole, self.size((width, height))?, self.interpolation)
    }
}
