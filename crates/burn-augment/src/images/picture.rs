//! The changes that transforms make. Pixels are changed at once. A file records the changes, and they are made later.

use super::{
    colour::Adjust,
    error::VisionError,
    geometry::{CropBox, Interpolation, Mapping, PaddingMode, Rect, Walk, cut, fill, mirror, resized, warp},
    parameters::Size,
};
use crate::rng::KeyedRng;
use image::{ImageBuffer, Luma, RgbImage, imageops, metadata::Orientation};

/// The numbers of a mask.
pub(crate) type MaskNumbers = ImageBuffer<Luma<u16>, Vec<u16>>;

/// What transforms change: an [`RgbImage`], an [`Image`](super::Image), or [`AllParts`](super::AllParts) of a sample.
/// An `Image` that is not decoded only records crops, a resize, flips, quarter turns, changes of colour and an erased
/// part, until its pixels are needed.
///
/// ```
/// use burn_augment::images::{CropBox, Interpolation, Picture, Size, VisionError};
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no image",
    label = "this must be `Image` or `RgbImage`",
    note = "an `Image` of a file is decoded late: `Image::open(path, &Limits::default())`, or `Image::from_bytes(bytes, &Limits::default())`"
)]
pub trait Picture: sealed::Sealed {
    /// Width and height, in pixels.
    fn dimensions(&self) -> (u32, u32);

    /// Cuts out a part. Beyond the border it shows padding of this `mode`.
    ///
    /// # Errors
    /// If pixels are needed and the file cannot be decoded.
    fn crop(&mut self, part: CropBox, mode: PaddingMode, fill: [u8; 3]) -> Result<(), VisionError>;

    /// Resizes a part as if it were the whole image.
    ///
    /// # Errors
    /// If the part is empty or reaches beyond the image, or pixels are needed and the file cannot be decoded.
    fn resized_crop(&mut self, part: CropBox, size: Size, by: Interpolation) -> Result<(), VisionError>;

    /// Mirrors left to right.
    fn flip_horizontal(&mut self) {
        self.turn(Orientation::FlipHorizontal);
    }

    /// Mirrors top to bottom.
    fn flip_vertical(&mut self) {
        self.turn(Orientation::FlipVertical);
    }

    /// Swaps rows and columns: mirrors at the diagonal from the top left. With a flip after it, this is a quarter turn.
    fn transpose(&mut self) {
        self.turn(Orientation::Rotate90FlipH);
    }

    /// Changes the colours.
    ///
    /// # Errors
    /// If pixels are needed and the file cannot be decoded.
    fn adjust(&mut self, change: Adjust) -> Result<(), VisionError>;

    /// Gives a part one colour.
    ///
    /// # Errors
    /// If the part reaches beyond the image, or pixels are needed and the file cannot be decoded.
    fn erase(&mut self, part: CropBox, colour: [u8; 3]) -> Result<(), VisionError>;

    /// The pixels. A file is decoded now, with all recorded changes.
    ///
    /// # Errors
    /// If the file cannot be decoded.
    fn pixels_mut(&mut self) -> Result<&mut RgbImage, VisionError>;
}

/// A change that is drawn from a generator.
pub(crate) trait Transform {
    /// Changes a picture, which may be an image with all that moves with it.
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError>;
}

pub(super) mod sealed {
    use super::{
        Interpolation, Mapping, MaskNumbers, Orientation, RgbImage, Size, VisionError, Walk, imageops, mirror, warp,
    };

    #[expect(unnameable_types, reason = "that is what seals the trait")]
    pub trait Sealed {
        /// Draws the picture into one of `size`. Pixels from outside get the colour `fill`.
        fn warp(&mut self, size: Size, from: Mapping<'_>, by: Interpolation, fill: [u8; 3]) -> Result<(), VisionError>;

        /// Changes the pixels of each image, which are decoded for it.
        fn repaint(&mut self, change: &mut dyn FnMut(&mut RgbImage)) -> Result<(), VisionError>;

        /// Mirrors left to right or top to bottom, or swaps rows and columns. Each of them is its own inverse.
        fn turn(&mut self, by: Orientation);

        /// The numbers of the first mask that moves with the picture. It is decoded for them.
        fn mask_numbers(&mut self) -> Result<Option<&MaskNumbers>, VisionError> {
            Ok(None)
        }
    }

    impl Sealed for RgbImage {
        fn warp(&mut self, size: Size, from: Mapping<'_>, by: Interpolation, fill: [u8; 3]) -> Result<(), VisionError> {
            *self = warp(self, size, from, by, fill);
            Ok(())
        }

        fn repaint(&mut self, change: &mut dyn FnMut(&mut RgbImage)) -> Result<(), VisionError> {
            change(self);
            Ok(())
        }

        fn turn(&mut self, by: Orientation) {
            match by {
                Orientation::FlipHorizontal => mirror(self),
                Orientation::FlipVertical => imageops::flip_vertical_in_place(self),
                _ => *self = Walk::new(by, self.dimensions()).image(self),
            }
        }
    }
}

impl Picture for RgbImage {
    fn dimensions(&self) -> (u32, u32) {
        self.dimensions()
    }

    fn crop(&mut self, part: CropBox, mode: PaddingMode, colour: [u8; 3]) -> Result<(), VisionError> {
        *self = cut(self, part, mode, colour);
        Ok(())
    }

    fn resized_crop(&mut self, part: CropBox, size: Size, by: Interpolation) -> Result<(), VisionError> {
        *self = resized(self, inside(part, self.dimensions())?, size, by)?;
        Ok(())
    }

    fn adjust(&mut self, change: Adjust) -> Result<(), VisionError> {
        change.apply(self);
        Ok(())
    }

    fn erase(&mut self, part: CropBox, colour: [u8; 3]) -> Result<(), VisionError> {
        fill(self, within(part, self.dimensions())?, colour);
        Ok(())
    }

    fn pixels_mut(&mut self) -> Result<&mut RgbImage, VisionError> {
        Ok(self)
    }
}

/// Checks that a part has pixels, and lies within an image of this size.
pub(super) fn inside(part: CropBox, size: (u32, u32)) -> Result<Rect, VisionError> {
    let outside = VisionError::PartOutside { part, width: size.0, height: size.1 };
    within(part, size).ok().filter(|rect| rect.width > 0 && rect.height > 0).ok_or(outside)
}

/// Checks that a part lies within an image of this size.
pub(super) fn within(part: CropBox, (width, height): (u32, u32)) -> Result<Rect, VisionError> {
    Rect::within(part, (width, height)).ok_or(VisionError::PartOutside { part, width, height })
}
