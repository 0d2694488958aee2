//! A number for each pixel of an image, such as its class or its object.

use super::{
    moves::{Move, check_size},
    overlay::Overlay,
};
use crate::images::{
    decode::{Limits, numbers, read_mask},
    error::VisionError,
    geometry::{Interpolation, cut_into, warp_nearest},
    lazy::{PictureContent, View, open},
    picture::{MaskNumbers, inside},
};
use bytes::Bytes;
use image::{GrayImage, ImageBuffer, Luma, metadata::Orientation};
use std::{fmt, path::Path, sync::Arc};

/// A number from 0 to 65,535 for each pixel of an image, such as a class or a depth. It moves with the image.
///
/// ```no_run
/// use burn_augment::{Augment, KeyedRng, images::*};
///
/// let limits = Limits::default();
/// let sample = (Image::open("street/1.jpg", &limits)?, Mask::open("street/1.png", &limits)?);
/// let train = (RandomResizedCrop::new(224)?, RandomHorizontalFlip::default(), ColorJitter::new().brightness(0.4)?);
/// let (image, mask) = train.apply(sample, &mut KeyedRng::for_order(1, 0))?;
/// assert_eq!(mask.dimensions(), image.dimensions());
/// let classes = mask.to_numbers()?; // decodes now; in a collate: `row.mask("mask", &mask)`
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// The numbers are those of the file: the indices of a palette, or grey of 1 to 16 bits, unscaled. Colour files are
/// refused, and so are JPEGs, since compression changes the numbers. PNG is read, and grey TIFF of 8 or 16 bits if your
/// program enables the feature `tiff` of the crate `image`. EXIF orientation rotates a mask like an image.
///
/// Like an [`Image`](super::super::Image), a mask of a file is decoded late, and records crops, flips and a resize.
/// Each pixel gets the number under its centre: torchvision's `NEAREST_EXACT`
/// (`torchvision.transforms.v2.functional.resize_mask` is up to half a pixel off). Pixels from outside get the number
/// [`fill`](Self::fill).
#[derive(Clone)]
pub struct Mask {
    /// A file, or numbers and their recorded changes.
    content: PictureContent<ImageBuffer<Luma<u16>, Vec<u16>>, View>,
    fill: u16,
}

impl Mask {
    /// Reads a file and its header.
    ///
    /// # Errors
    /// [`VisionError::File`], with the path, if the file cannot be read, exceeds the limits, is a JPEG or has colours.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self, VisionError> {
        open(path.as_ref(), limits, Self::from_file)
    }

    /// Takes the bytes of a file, and reads its header.
    ///
    /// # Errors
    /// If the bytes have no known format, exceed the limits, are a JPEG or have colours.
    pub fn from_bytes(bytes: impl Into<Bytes>, limits: &Limits) -> Result<Self, VisionError> {
        Self::from_file(bytes.into(), limits, None)
    }

    pub(in crate::images) fn from_file(
        bytes: Bytes,
        limits: &Limits,
        path: Option<Arc<Path>>,
    ) -> Result<Self, VisionError> {
        Ok(Self { content: PictureContent::of_file(read_mask(bytes, limits)?, path), fill: Self::FILL })
    }

    /// The numbers as the file stores them, without the orientation of EXIF or XMP: see
    /// [`Image::as_stored`](super::super::Image::as_stored).
    ///
    /// # Errors
    /// If the mask is decoded or changed.
    pub fn as_stored(self) -> Result<Self, VisionError> {
        Ok(Self { content: self.content.into_stored("mask")?, ..self })
    }

    /// The number that losses usually ignore.
    pub(crate) const FILL: u16 = 255;

    /// Sets the number of pixels from outside: of padding, and of the corners of a rotation. Default: 255.
    pub fn fill(mut self, number: u16) -> Self {
        self.fill = number;
        self
    }

    /// Width and height, in pixels, after all recorded changes.
    pub fn dimensions(&self) -> (u32, u32) {
        self.view().dimensions()
    }

    fn view(&self) -> &View {
        match &self.content {
            PictureContent::File(file) => &file.view,
            PictureContent::Pixels(_, view) => view,
        }
    }

    fn view_mut(&mut self) -> &mut View {
        match &mut self.content {
            PictureContent::File(file) => &mut file.view,
            PictureContent::Pixels(_, view) => view,
        }
    }

    /// Returns the numbers. If the mask is not decoded, each call decodes it.
    ///
    /// # Errors
    /// If the file cannot be decoded.
    pub fn to_numbers(&self) -> Result<ImageBuffer<Luma<u16>, Vec<u16>>, VisionError> {
        let (width, height) = self.dimensions();
        let mut out = ImageBuffer::new(width, height);
        self.write(Some, &mut out)?;
        Ok(out)
    }

    /// Writes the numbers: `value(number)` for each. `None` is a number that the row cannot have.
    #[doc(hidden)]
    pub fn write<T>(&self, value: impl Fn(u16) -> Option<T>, row: &mut [T]) -> Result<(), VisionError> {
        let decoded;
        let numbers = match &self.content {
            PictureContent::Pixels(numbers, _) => numbers,
            PictureContent::File(file) => {
                decoded = numbers(&file.encoded).map_err(|error| error.of_file(file.path.as_deref()))?;
                &decoded
            }
        };
        if row.is_empty() {
            return Ok(()); // a mask without pixels
        }
        let [columns, rows] = self.view().nearest(numbers.width());
        for (out, row) in row.chunks_exact_mut(columns.len()).zip(rows) {
            for (out, column) in out.iter_mut().zip(&columns) {
                let number = numbers.as_raw()[(column + row) as usize];
                *out = value(number).ok_or_else(|| {
                    VisionError::of_part(
                        "mask",
                        format!("has the number {number}, which its field cannot hold"),
                        "give the field the dtype I32, or the mask another `fill`",
                    )
                })?;
            }
        }
        Ok(())
    }

    /// Decodes the mask, makes the recorded changes, and returns the numbers.
    pub(super) fn decoded(&mut self) -> Result<&MaskNumbers, VisionError> {
        *self = Self { fill: self.fill, ..self.to_numbers()?.into() };
        match &self.content {
            PictureContent::Pixels(numbers, _) => Ok(numbers),
            PictureContent::File(_) => Err(VisionError::NoPixels), // decoded above
        }
    }

    /// Makes the recorded changes, and then new numbers of this size. `change` makes them of the old ones and their
    /// size.
    fn redraw(
        &mut self,
        (width, height): (u32, u32),
        change: impl FnOnce(&[u16], (u32, u32), &mut [u16]),
    ) -> Result<(), VisionError> {
        let (before, mut after) = (self.to_numbers()?, ImageBuffer::<Luma<u16>, _>::new(width, height));
        change(&before, before.dimensions(), &mut after);
        *self = Self { fill: self.fill, ..after.into() };
        Ok(())
    }

    pub(super) fn check(&self, size: (u32, u32)) -> Result<(), VisionError> {
        let cure = "give each image the mask that was drawn for it, at its size and turned as its EXIF says";
        let checked = check_size("mask", self.dimensions(), "its image", size, cure);
        checked.map_err(|error| error.of_file(self.content.path()))
    }

    pub(super) fn follow(
        &mut self,
        by: &Move<'_>,
        from: (u32, u32),
        (width, height): (u32, u32),
    ) -> Result<(), VisionError> {
        let fill = self.fill;
        match *by {
            Move::Crop(part, mode, _) => match inside(part, from) {
                Ok(rect) => self.view_mut().crop(rect),
                Err(_) => {
                    self.redraw((width, height), |old, size, new| cut_into(old, size, part, mode, fill, new))?;
                }
            },
            Move::Resized(part, size, _) => {
                let rect = inside(part, from)?;
                if !self.view_mut().resize(rect, size, Interpolation::Nearest) {
                    // A second resize starts with the numbers that the first one made.
                    self.decoded()?;
                    self.view_mut().resize(rect, size, Interpolation::Nearest);
                }
            }
            Move::Warp(from, size, ..) => {
                self.redraw((width, height), |old, whole, new| warp_nearest(old, whole, size, from, fill, new))?;
            }
        }
        Ok(())
    }

    /// Takes the numbers of the pixels that are those of another image: of its mask, or 0.
    pub(super) fn join(&mut self, other: Option<&Self>, by: &Overlay<'_>) -> Result<(), VisionError> {
        let (mut numbers, theirs) = (self.to_numbers()?, other.map(Self::to_numbers).transpose()?);
        for (x, y, number) in numbers.enumerate_pixels_mut().filter(|(x, y, _)| by.is_theirs(*x, *y) == Some(true)) {
            *number = theirs.as_ref().map_or(Luma([0]), |theirs| *theirs.get_pixel(x, y));
        }
        *self = Self { fill: self.fill, ..numbers.into() };
        Ok(())
    }

    pub(super) fn turn(&mut self, by: Orientation) {
        self.view_mut().turn(by);
    }
}

impl From<ImageBuffer<Luma<u16>, Vec<u16>>> for Mask {
    fn from(numbers: ImageBuffer<Luma<u16>, Vec<u16>>) -> Self {
        let view = View::whole(numbers.dimensions());
        Self { content: PictureContent::Pixels(numbers, view), fill: Self::FILL }
    }
}

impl From<GrayImage> for Mask {
    fn from(numbers: GrayImage) -> Self {
        let number = |x, y| Luma([u16::from(numbers.get_pixel(x, y).0[0])]);
        ImageBuffer::from_fn(numbers.width(), numbers.height(), number).into()
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.dimensions();
        write!(f, "Mask({width} x {height}")?;
        self.content.end_debug(f)
    }
}
