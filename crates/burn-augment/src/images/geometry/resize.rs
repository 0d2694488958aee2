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
/// let image = Resize::shorter_side(800)?.max_size(1333)?.resize(&RgbImage::new(500, 100))?;
/// assert_eq!(image.dimensions(), (1333, 266));
/// let image = Resize::longer_side(640)?.resize(&RgbImage::new(500, 375))?;
/// assert_eq!(image.dimensions(), (640, 480));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It works as torchvision's `Resize`, and makes at least one pixel. For a frame of one size without other proportions,
/// use [`LetterBox`](crate::images::LetterBox).
#[derive(Debug, Clone, Copy)]
pub struct Resize {
    sides: Sides,
    interpolation: Interpolation,
}

/// Which sides are given.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sides {
    Both(Size),
    /// The shorter one, and the most that the longer one may have.
    Shorter(u32, u32),
    Longer(u32),
}

impl Resize {
    /// Resizes to `size`, which is one side or `[height, width]`, without keeping the proportions.
    ///
    /// # Errors
    /// If a side is 0, or beyond 65,535.
    pub fn exact(size: impl Into<Size>) -> Result<Self, Error> {
        let size = size.into().checked("Resize::exact")?;
        Ok(Self::by(Sides::Both(size)))
    }

    /// Resizes the shorter side to `side`, and the longer by the same factor, rounded down: torchvision's
    /// `Resize(side)`.
    ///
    /// # Errors
    /// If the side is 0, or beyond 65,535.
    pub fn shorter_side(side: u32) -> Result<Self, Error> {
        Size::from(side).checked("Resize::shorter_side")?;
        Ok(Self::by(Sides::Shorter(side, u32::MAX)))
    }

    /// Resizes the longer side to `side`, and the shorter by the same factor, rounded down: torchvision's
    /// `Resize(None, max_size=side)`, and albumentations' `LongestMaxSize(side)`, which rounds to the nearest.
    ///
    /// # Errors
    /// If the side is 0, or beyond 65,535.
    #[doc(alias = "LongestMaxSize")]
    pub fn longer_side(side: u32) -> Result<Self, Error> {
        Size::from(side).checked("Resize::longer_side")?;
        Ok(Self::by(Sides::Longer(side)))
    }

    pub(super) fn by(sides: Sides) -> Self {
        Self { sides, interpolation: Interpolation::default() }
    }

    /// Limits the longer side. If it would become longer, it gets this size, and the shorter side follows.
    ///
    /// # Errors
    /// Unless this is a resize by [`shorter_side`](Self::shorter_side), which is below `side`, and `side` is at most
    /// 65,535.
    pub fn max_size(mut self, side: u32) -> Result<Self, Error> {
        if let Sides::Shorter(shorter, most) = &mut self.sides
            && (*shorter + 1..=MAX_SIDE).contains(&side)
        {
            *most = side;
            return Ok(self);
        }
        let problem = format!("{side} is no limit of the longer side");
        let advice = format!("give `Resize::shorter_side` less than that, and here up to {MAX_SIDE}");
        Err(Error::config("Resize::max_size", problem, advice))
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
    pub(super) fn size(&self, (width, height): (u32, u32)) -> Result<Size, VisionError> {
        let [short, long] = [width.min(height), width.max(height)].map(u64::from);
        let [shorter, longer] = match self.sides {
            Sides::Both(size) => return Ok(size),
            Sides::Longer(side) => [u64::from(side) * short / long, side.into()],
            Sides::Shorter(side, most) => {
                let [side, most] = [side, most].map(u64::from);
                let longer = side * long / short;
                if longer > most { [most * side / longer, most] } else { [side, longer] }
            }
        };
        let [shorter, longer] = [shorter, longer].map(|side| side as f64);
        let [across, down] = if width < height { [shorter, longer] } else { [longer, shorter] };
        whole_size([across, down], (width, height))
    }
}

/// The size of these sides, rounded down, but of at least one pixel.
///
/// # Errors
/// If a side is too long: a line that is one pixel wide would become an image of gigabytes.
pub(super) fn whole_size([across, down]: [f64; 2], (width, height): (u32, u32)) -> Result<Size, VisionError> {
    let [across, down] = [across, down].map(|side| (side as u32).max(1));
    if across.max(down) > MAX_SIDE {
        return Err(VisionError::ResultTooLarge { width, height, limit: MAX_SIDE });
    }
    Ok(Size { height: down, width: across })
}

impl Transform for Resize {
    fn change(&self, image: &mut impl Picture, _: &mut KeyedRng) -> Result<(), VisionError> {
        let size = self.size(image.dimensions())?;
        image.resized_crop(CropBox::whole(image.dimensions()), size, self.interpolation)
    }
}
