//! What transforms do to a picture: to one of pixels at once, to one of a file later.

use super::{
    error::VisionError,
    geometry::{CropBox, Interpolation, PaddingMode, Rect, cut, mirror, resized},
    parameters::Size,
};
use image::{RgbImage, imageops};

/// A picture that transforms change: an [`RgbImage`], or an [`Image`](super::Image), which only notes crops, resizes
/// and flips until somebody wants its pixels.
///
/// ```
/// use burn_pinned::vision::{CropBox, Interpolation, Picture, Size, VisionError};
///
/// /// The upper half, at 64 x 32 pixels.
/// fn sky(picture: &mut impl Picture) -> Result<(), VisionError> {
///     let (width, height) = picture.dimensions();
///     let half = CropBox { left: 0, top: 0, width, height: height / 2 };
///     picture.resized_crop(half, Size { width: 64, height: 32 }, Interpolation::Bilinear)
/// }
/// # sky(&mut image::RgbImage::new(80, 60)).unwrap();
/// ```
///
/// It cannot be implemented outside this crate.
pub trait Picture: sealed::Sealed {
    /// Width and height, in pixels.
    fn dimensions(&self) -> (u32, u32);

    /// Cuts out a part. Where it reaches beyond the picture, it shows what `mode` says.
    ///
    /// # Errors
    /// If pixels are needed and the file cannot be decoded.
    fn crop(&mut self, part: CropBox, mode: PaddingMode, fill: [u8; 3]) -> Result<(), VisionError>;

    /// Resizes a part as if it were the whole picture.
    ///
    /// # Errors
    /// If the part is empty or reaches beyond the picture, or pixels are needed and the file cannot be decoded.
    fn resized_crop(&mut self, part: CropBox, size: Size, by: Interpolation) -> Result<(), VisionError>;

    /// Mirrors left to right.
    fn flip_horizontal(&mut self);

    /// Mirrors top to bottom.
    fn flip_vertical(&mut self);

    /// The pixels. A file is decoded now, and everything noted is done.
    ///
    /// # Errors
    /// If the file cannot be decoded.
    fn pixels_mut(&mut self) -> Result<&mut RgbImage, VisionError>;
}

pub(super) mod sealed {
    #[expect(unnameable_types, reason = "that is what seals the trait")]
    pub trait Sealed {}
    impl Sealed for image::RgbImage {}
}

impl Picture for RgbImage {
    fn dimensions(&self) -> (u32, u32) {
        self.dimensions()
    }

    fn crop(&mut self, part: CropBox, mode: PaddingMode, fill: [u8; 3]) -> Result<(), VisionError> {
        *self = cut(self, part, mode, fill);
        Ok(())
    }

    fn resized_crop(&mut self, part: CropBox, size: Size, by: Interpolation) -> Result<(), VisionError> {
        *self = resized(self, inside(part, self.dimensions())?, size, by)?;
        Ok(())
    }

    fn flip_horizontal(&mut self) {
        mirror(self);
    }

    fn flip_vertical(&mut self) {
        imageops::flip_vertical_in_place(self);
    }

    fn pixels_mut(&mut self) -> Result<&mut RgbImage, VisionError> {
        Ok(self)
    }
}

/// Checks that a part has pixels, and lies within an image of this size.
pub(super) fn inside(part: CropBox, (width, height): (u32, u32)) -> Result<Rect, VisionError> {
    let rect = Rect::within(part, (width, height)).filter(|rect| rect.width > 0 && rect.height > 0);
    rect.ok_or(VisionError::PartOutside { part, width, height })
}
