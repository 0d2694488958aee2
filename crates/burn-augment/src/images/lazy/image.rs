//! An image that is decoded when its pixels are needed.

use super::{
    file::{ImageFile, PictureContent, open},
    render,
};
use crate::images::{
    colour::Adjust,
    decode::{EncodedFile, Limits, write_planes},
    error::VisionError,
    geometry::{CropBox, Interpolation, Mapping, PaddingMode, Walk},
    parameters::Size,
    picture::{Picture, inside, sealed, within},
};
use ::image::{DynamicImage, ImageBuffer, Rgb, RgbImage, metadata::Orientation};
use bytes::Bytes;
use std::{fmt, path::Path, sync::Arc};

/// An image: a file that is not decoded yet, or pixels.
///
/// ```no_run
/// use burn_augment::{Augment, KeyedRng, images::{Image, Limits, RandomHorizontalFlip, RandomResizedCrop}};
///
/// let train = (RandomResizedCrop::new(224)?, RandomHorizontalFlip::default());
/// let image = Image::open("cat/1.jpg", &Limits::default())?; // reads the file, decodes nothing
/// let image = train.apply(image, &mut KeyedRng::for_order(1, 0))?; // records a crop, its size, a flip
/// assert_eq!(image.dimensions(), (224, 224));
/// let pixels = image.to_rgb()?; // decodes that part
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// An image that is not decoded records crops, a resize, flips, quarter turns, the changes of
/// [`Adjust`](crate::images::Adjust), grey, and an erased part of one colour. It makes them when its pixels are needed.
/// The random numbers and the pixels are the same as for a decoded image. The loader burn-pinned decodes on its workers
/// (`RowMut::image`), or leaves it to the device (`Field::image`).
///
/// Everything else decodes at once, such as a rotation, noise, a second resize, a resize after a change of colour, or a
/// crop that reaches beyond the image. The README of burn-augment has the full list.
///
/// A clone shares the bytes of the file.
#[derive(Clone)]
pub struct Image {
    /// A file, or pixels, and whether their file has 16 bits per value.
    content: PictureContent<RgbImage, bool>,
}

impl Image {
    /// Reads a file and its header.
    ///
    /// # Errors
    /// [`VisionError::File`], with the path, if the file cannot be read, is a pipe or a device, is truncated, or
    /// exceeds the limits. Errors in its data appear when it is decoded.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self, VisionError> {
        open(path.as_ref(), limits, Self::from_file)
    }

    /// Takes the bytes of a file, and reads its header.
    ///
    /// # Errors
    /// If the bytes have no known format, are truncated, or exceed the limits.
    pub fn from_bytes(bytes: impl Into<Bytes>, limits: &Limits) -> Result<Self, VisionError> {
        Self::from_file(bytes.into(), limits, None)
    }

    pub(super) fn from_file(bytes: Bytes, limits: &Limits, path: Option<Arc<Path>>) -> Result<Self, VisionError> {
        Ok(Self { content: PictureContent::of_file(EncodedFile::read(bytes, limits)?, path) })
    }

    /// The image as the file stores it, without the orientation of EXIF or XMP. Use it if a tool that reads neither
    /// made the boxes or the mask.
    ///
    /// ```no_run
    /// use burn_augment::images::{Image, Limits};
    ///
    /// let image = Image::open("1.jpg", &Limits::default())?.as_stored()?;
    /// # Ok::<(), burn_augment::images::VisionError>(())
    /// ```
    ///
    /// # Errors
    /// If the image is decoded or changed.
    pub fn as_stored(self) -> Result<Self, VisionError> {
        Ok(Self { content: self.content.into_stored("image")? })
    }

    /// Width and height, in pixels, after all recorded changes.
    pub fn dimensions(&self) -> (u32, u32) {
        match &self.content {
            PictureContent::Pixels(pixels, _) => pixels.dimensions(),
            PictureContent::File(file) => file.view.dimensions(),
        }
    }

    /// Whether the image is decoded.
    pub fn is_decoded(&self) -> bool {
        matches!(self.content, PictureContent::Pixels(..))
    }

    /// Returns the pixels. If the image is not decoded, each call decodes it.
    ///
    /// # Errors
    /// If the file cannot be decoded.
    pub fn to_rgb(&self) -> Result<RgbImage, VisionError> {
        match &self.content {
            PictureContent::Pixels(pixels, _) => Ok(pixels.clone()),
            PictureContent::File(file) => render::pixels(file),
        }
    }

    /// Returns the pixels.
    ///
    /// # Errors
    /// If the file cannot be decoded.
    pub fn into_rgb(self) -> Result<RgbImage, VisionError> {
        match self.content {
            PictureContent::Pixels(pixels, _) => Ok(pixels),
            PictureContent::File(file) => render::pixels(&file),
        }
    }

    /// Whether a value of the file has 16 bits.
    #[doc(hidden)]
    pub fn is_deep(&self) -> bool {
        match &self.content {
            PictureContent::Pixels(_, is_deep) => *is_deep,
            PictureContent::File(file) => file.encoded.is_deep,
        }
    }

    /// Returns the pixels with 16 bits per value. Values of 8 bits are multiplied by 257.
    ///
    /// # Errors
    /// If the file cannot be decoded, or if it has 16 bits and a transform reduced them to 8.
    pub fn to_rgb16(&self) -> Result<ImageBuffer<Rgb<u16>, Vec<u16>>, VisionError> {
        match &self.content {
            PictureContent::File(file) if file.encoded.is_deep => render::deep_pixels(file),
            PictureContent::Pixels(_, true) => Err(render::cut_to_bytes("it was decoded")),
            _ => Ok(DynamicImage::ImageRgb8(self.to_rgb()?).into_rgb16()),
        }
    }

    /// Writes the pixels as planes, red, green and blue: `value(channel, byte)` for each byte.
    ///
    /// # Errors
    /// If the file cannot be decoded, or the row has another length.
    #[doc(hidden)]
    pub fn write<T>(&self, value: impl Fn(usize, u8) -> T, row: &mut [T]) -> Result<(), VisionError> {
        match &self.content {
            PictureContent::Pixels(pixels, _) => {
                write_planes(pixels, pixels.width(), &Walk::whole(pixels.dimensions()), value, row)
            }
            PictureContent::File(file) => render::write(file, value, row),
        }
    }

    pub(super) fn content(&self) -> &PictureContent<RgbImage, bool> {
        &self.content
    }

    /// Returns the file, if it is not decoded.
    fn file_mut(&mut self) -> Option<&mut ImageFile> {
        match &mut self.content {
            PictureContent::File(file) => Some(file),
            PictureContent::Pixels(..) => None,
        }
    }
}

impl From<RgbImage> for Image {
    fn from(pixels: RgbImage) -> Self {
        Self { content: PictureContent::Pixels(pixels, false) }
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.dimensions();
        let state = if self.is_decoded() { "decoded" } else { "not decoded" };
        write!(f, "Image({width} x {height}, {state}")?;
        self.content.end_debug(f)
    }
}

impl sealed::Sealed for Image {
    fn warp(&mut self, size: Size, from: Mapping<'_>, by: Interpolation, fill: [u8; 3]) -> Result<(), VisionError> {
        self.pixels_mut()?.warp(size, from, by, fill)
    }

    fn repaint(&mut self, change: &mut dyn FnMut(&mut RgbImage)) -> Result<(), VisionError> {
        self.pixels_mut().map(change)
    }

    fn turn(&mut self, by: Orientation) {
        match &mut self.content {
            PictureContent::Pixels(pixels, _) => pixels.turn(by),
            PictureContent::File(file) => file.turn(by),
        }
    }
}

impl Picture for Image {
    fn dimensions(&self) -> (u32, u32) {
        self.dimensions()
    }

    fn crop(&mut self, part: CropBox, mode: PaddingMode, fill: [u8; 3]) -> Result<(), VisionError> {
        if let Ok(rect) = inside(part, self.dimensions())
            && let Some(file) = self.file_mut().filter(|file| file.paint.is_of_pixels())
        {
            file.view.crop(rect);
            return Ok(());
        }
        self.pixels_mut()?.crop(part, mode, fill)
    }

    fn resized_crop(&mut self, part: CropBox, size: Size, by: Interpolation) -> Result<(), VisionError> {
        let rect = inside(part, self.dimensions())?;
        if self.file_mut().is_some_and(|file| file.paint.is_none() && file.view.resize(rect, size, by)) {
            return Ok(());
        }
        self.pixels_mut()?.resized_crop(part, size, by)
    }

    fn adjust(&mut self, change: Adjust) -> Result<(), VisionError> {
        if self.file_mut().is_some_and(|file| file.paint.adjust(change)) {
            return Ok(());
        }
        self.pixels_mut()?.adjust(change)
    }

    fn erase(&mut self, part: CropBox, colour: [u8; 3]) -> Result<(), VisionError> {
        let rect = within(part, self.dimensions())?;
        if self.file_mut().is_some_and(|file| file.paint.erase(rect, colour)) {
            return Ok(());
        }
        self.pixels_mut()?.erase(part, colour)
    }

    fn pixels_mut(&mut self) -> Result<&mut RgbImage, VisionError> {
        if let PictureContent::File(file) = &self.content {
            self.content = PictureContent::Pixels(render::pixels(file)?, file.encoded.is_deep);
        }
        match &mut self.content {
            PictureContent::Pixels(pixels, _) => Ok(pixels),
            PictureContent::File(_) => Err(VisionError::NoPixels), // decoded above
        }
    }
}
