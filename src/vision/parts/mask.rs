//! A picture of numbers: which class, or which object, each pixel of an image belongs to.

use super::moves::Move;
use crate::vision::{
    decode::{Limits, Numbers, mask_size, numbers, read},
    error::VisionError,
    geometry::{Interpolation, Mirror, cut_into, warp_nearest},
    lazy::{View, changed_before},
    picture::inside,
};
use bytes::Bytes;
use image::{GrayImage, ImageBuffer, Luma};
use std::{fmt, path::Path, sync::Arc};

/// A picture of numbers from 0 to 65,535, which moves with its image: the classes of its pixels, or depths.
///
/// ```no_run
/// use burn_pinned::{Augment, KeyedRng, vision::*};
///
/// let limits = Limits::default();
/// let sample = (Image::open("street/1.jpg", &limits)?, Mask::open("street/1.png", &limits)?);
/// let train = (RandomResizedCrop::new(224)?, RandomHorizontalFlip::default(), ColorJitter::new().brightness(0.4)?);
/// let (image, mask) = train.apply(sample, &mut KeyedRng::for_order(1, 0))?;
/// assert_eq!(mask.dimensions(), image.dimensions());
/// let classes = mask.to_numbers()?; // decodes now; in a collate: `row.mask("mask", &mask)`
/// # Ok::<(), burn_pinned::BoxError>(())
/// ```
///
/// The numbers are those of the file: the indices of a palette, or grey of 1 to 16 bits, unscaled. Colours are refused,
/// and so are JPEGs, whose numbers are not those that were drawn. PNG is read, and grey TIFF of 8 or 16 bits if the
/// program switches on the feature `tiff` of the crate `image`. EXIF turns a mask as it turns an image.
///
/// As an [`Image`](super::super::Image), a mask of a file is decoded late, and notes crops, flips and a resize. Each
/// pixel gets the number of the pixel that lies under its middle: torchvision's `NEAREST_EXACT`
/// (`torchvision.transforms.v2.functional.resize_mask` is up to half a pixel beside the image). What comes from outside
/// is
/// [`fill`](Self::fill).
#[derive(Clone)]
pub struct Mask {
    source: MaskContent,
    view: View,
    fill: u16,
}

#[derive(Clone)]
enum MaskContent {
    File { bytes: Bytes, limits: Limits, path: Option<Arc<Path>>, as_stored: bool },
    Numbers(Numbers),
}

impl Mask {
    /// Reads a file and its header.
    ///
    /// # Errors
    /// [`VisionError::File`], with the path, if the file cannot be read, is larger than the limits, is a JPEG or has
    /// colours.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self, VisionError> {
        let path = path.as_ref();
        let mask = read(path, limits).and_then(|bytes| Self::from_file(bytes.into(), limits, Some(path.into())));
        mask.map_err(|error| error.of_file(path))
    }

    /// Takes the bytes of a file, and reads its header.
    ///
    /// # Errors
    /// If the bytes are of no known format, are over the limits, are a JPEG or have colours.
    pub fn from_bytes(bytes: impl Into<Bytes>, limits: &Limits) -> Result<Self, VisionError> {
        Self::from_file(bytes.into(), limits, None)
    }

    pub(in crate::vision) fn from_file(
        bytes: Bytes,
        limits: &Limits,
        path: Option<Arc<Path>>,
    ) -> Result<Self, VisionError> {
        let view = View::whole(mask_size(&bytes, limits, false)?);
        let source = MaskContent::File { bytes, limits: *limits, path, as_stored: false };
        Ok(Self { source, view, fill: Self::FILL })
    }

    /// The numbers as the file stores them, whatever EXIF or XMP say of their orientation: as
    /// [`Image::as_stored`](super::super::Image::as_stored).
    ///
    /// # Errors
    /// If the mask is changed.
    pub fn as_stored(mut self) -> Result<Self, VisionError> {
        match &mut self.source {
            MaskContent::File { bytes, limits, as_stored, .. }
                if self.view == View::whole(mask_size(bytes, limits, *as_stored)?) =>
            {
                *as_stored = true;
                self.view = View::whole(mask_size(bytes, limits, true)?);
                Ok(self)
            }
            _ => Err(changed_before("mask")),
        }
    }

    /// The number that losses mostly ignore.
    const FILL: u16 = 255;

    /// Sets the number of what comes from outside: of padding, and of the corners of a rotation. Default: 255.
    pub fn fill(mut self, number: u16) -> Self {
        self.fill = number;
        self
    }

    /// Width and height, in pixels, after everything that is noted.
    pub fn dimensions(&self) -> (u32, u32) {
        self.view.dimensions()
    }

    /// Returns the numbers. They are decoded in each call, if they are not there.
    ///
    /// # Errors
    /// If the file cannot be decoded.
    pub fn to_numbers(&self) -> Result<ImageBuffer<Luma<u16>, Vec<u16>>, VisionError> {
        let (width, height) = self.dimensions();
        let mut out = Numbers::new(width, height);
        self.write(Some, &mut out)?;
        Ok(out)
    }

    /// Writes the numbers: `value(number)` for each. `None` is a number that the row cannot have.
    pub(crate) fn write<T>(&self, value: impl Fn(u16) -> Option<T>, row: &mut [T]) -> Result<(), VisionError> {
        let decoded;
        let numbers = match &self.source {
            MaskContent::Numbers(numbers) => numbers,
            MaskContent::File { bytes, limits, path, as_stored } => {
                decoded = numbers(bytes, limits, *as_stored).map_err(|error| error.of_file(path.as_deref()))?;
                &decoded
            }
        };
        let ([columns, rows], transposed) = self.view.nearest();
        let pitch = numbers.width() as usize;
        let (across, down) = if transposed { (rows, columns) } else { (columns, rows) };
        for (out, down) in row.chunks_exact_mut(across.len()).zip(down) {
            for (out, across) in out.iter_mut().zip(&across) {
                let at = if transposed { across * pitch + down } else { down * pitch + across };
                let number = numbers.as_raw()[at];
                *out = value(number).ok_or_else(|| VisionError::Part {
                    part: "mask",
                    problem: format!("has the number {number}, which its field cannot hold"),
                    cure: "give the field the dtype I32, or the mask another `fill`",
                })?;
            }
        }
        Ok(())
    }

    /// Makes the noted changes, and then new numbers of this size. `change` makes them of the old ones and their size.
    fn redraw(
        &mut self,
        (width, height): (u32, u32),
        change: impl FnOnce(&[u16], (u32, u32), &mut [u16]),
    ) -> Result<(), VisionError> {
        let (before, mut after) = (self.to_numbers()?, Numbers::new(width, height));
        change(&before, before.dimensions(), &mut after);
        *self = Self { fill: self.fill, ..after.into() };
        Ok(())
    }

    pub(super) fn check(&self, size: (u32, u32)) -> Result<(), VisionError> {
        let own = self.dimensions();
        if own == size {
            return Ok(());
        }
        let path = match &self.source {
            MaskContent::File { path, .. } => path.as_deref(),
            MaskContent::Numbers(_) => None,
        };
        let error = VisionError::Part {
            part: "mask",
            problem: format!("is of {} x {} pixels, and its image of {} x {}", own.0, own.1, size.0, size.1),
            cure: "give each image the mask that was drawn for it, at its size and turned as its EXIF says",
        };
        Err(error.of_file(path))
    }

    pub(super) fn follow(
        &mut self,
        by: &Move,
        from: (u32, u32),
        (width, height): (u32, u32),
    ) -> Result<(), VisionError> {
        let fill = self.fill;
        match *by {
            Move::Crop(part, mode, _) => match inside(part, from) {
                Ok(rect) => self.view.crop(rect),
                Err(_) => {
                    self.redraw((width, height), |old, size, new| cut_into(old, size, part, mode, fill, new))?;
                }
            },
            Move::Resized(part, size, _) => {
                let rect = inside(part, from)?;
                if !self.view.resize(rect, size, Interpolation::Nearest) {
                    // A second resize starts with the numbers that the first one made.
                    *self = Self { fill, ..self.to_numbers()?.into() };
                    self.view.resize(rect, size, Interpolation::Nearest);
                }
            }
            Move::Warp(inverse, size, ..) => {
                self.redraw((width, height), |old, from, new| warp_nearest(old, from, size, inverse, fill, new))?;
            }
        }
        Ok(())
    }

    pub(super) fn mirror(&mut self, by: Mirror) {
        self.view.mirror(by);
    }

    pub(super) fn transpose(&mut self) {
        self.view.transpose();
    }
}

impl From<ImageBuffer<Luma<u16>, Vec<u16>>> for Mask {
    fn from(numbers: ImageBuffer<Luma<u16>, Vec<u16>>) -> Self {
        Self { view: View::whole(numbers.dimensions()), source: MaskContent::Numbers(numbers), fill: Self::FILL }
    }
}

impl From<GrayImage> for Mask {
    fn from(numbers: GrayImage) -> Self {
        Numbers::from_fn(numbers.width(), numbers.height(), |x, y| Luma([numbers.get_pixel(x, y).0[0].into()])).into()
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.dimensions();
        write!(f, "Mask({width} x {height}")?;
        match &self.source {
            MaskContent::File { path: Some(path), .. } => write!(f, ", {})", path.display()),
            _ => f.write_str(")"),
        }
    }
}
