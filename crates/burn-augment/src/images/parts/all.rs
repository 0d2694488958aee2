//! A sample's image and parts as one picture.

use super::{boxes::Boxes, mask::Mask, moves::Move, part::Part};
use crate::images::{
    colour::Adjust,
    error::VisionError,
    geometry::{CropBox, Interpolation, Mapping, PaddingMode},
    parameters::Size,
    picture::{MaskNumbers, Picture, sealed::Sealed},
    sample::HasImage,
};
use image::{RgbImage, metadata::Orientation};

/// The image of a sample with all its parts, as one [`Picture`]: for your own transform.
///
/// ```
/// use burn_augment::{Augment, BoxError, KeyedRng, images::*};
///
/// /// The left half of the image, with the parts of the masks, the boxes and the points that are there.
/// struct LeftHalf;
/// impl<S: HasImage> Augment<S> for LeftHalf {
///     fn apply(&self, mut sample: S, _: &mut KeyedRng) -> Result<S, BoxError> {
///         let mut all = AllParts::of(&mut sample)?;
///         let (width, height) = all.dimensions();
///         let half = CropBox { left: 0, top: 0, width: width.div_ceil(2), height };
///         all.crop(half, PaddingMode::Constant, [0; 3])?;
///         Ok(sample)
///     }
/// }
///
/// let boxes = Boxes::new([[10.0, 0.0, 70.0, 20.0]], [3], BoxFormat::Xyxy)?;
/// let sample = (image::RgbImage::new(100, 40), boxes);
/// let (image, boxes) = LeftHalf.apply(sample, &mut KeyedRng::for_order(1, 0))?;
/// assert_eq!((image.dimensions(), boxes.xyxy()), ((50, 40), &[[10.0, 0.0, 50.0, 20.0]][..]));
/// # Ok::<(), BoxError>(())
/// ```
///
/// Changes of colour and erased parts affect only images, and [`pixels_mut`](Picture::pixels_mut) only the first image.
#[derive(Debug)]
pub struct AllParts<'a, S> {
    sample: &'a mut S,
    /// The size of the image.
    size: (u32, u32),
}

impl<'a, S: HasImage> AllParts<'a, S> {
    /// Takes a sample, and checks that its parts belong to its image.
    ///
    /// # Errors
    /// If the image has no pixels, a mask or a second image has another size, a box lies outside, or parts are in a
    /// container that transforms do not search.
    pub fn of(sample: &'a mut S) -> Result<Self, VisionError> {
        let size = sample.image_mut().dimensions();
        if size.0 == 0 || size.1 == 0 {
            return Err(VisionError::NoPixels);
        }
        sample.parts_mut().into_iter().try_for_each(|part| part.check(size))?;
        Ok(Self { sample, size })
    }

    /// The first boxes of the sample.
    ///
    /// # Errors
    /// If there are none, and `change` needs them.
    pub(crate) fn boxes(&mut self, change: &str) -> Result<&mut Boxes, VisionError> {
        let boxes = self.sample.parts_mut().into_iter().find_map(|part| match part {
            Part::Boxes(boxes) => Some(boxes),
            _ => None,
        });
        boxes.ok_or_else(|| VisionError::missing("boxes", change))
    }

    /// Clips boxes at the border of the image, and removes those that are too small.
    pub(crate) fn clip(&mut self) {
        for part in self.sample.parts_mut() {
            if let Part::Boxes(boxes) = part {
                boxes.cut_off(self.size);
            }
        }
    }

    /// Hides the points outside the image, before other images come beside it.
    pub(crate) fn hide_points(&mut self) {
        for part in self.sample.parts_mut().into_iter().flat_map(Part::each) {
            if let Part::Points(points) = part {
                points.hide_outside(self.size);
            }
        }
    }

    /// Moves the image, and then its parts.
    fn moved(&mut self, by: Move<'_>) -> Result<(), VisionError> {
        by.change(self.sample.image_mut())?;
        let from = std::mem::replace(&mut self.size, self.sample.image_mut().dimensions());
        self.sample.parts_mut().into_iter().try_for_each(|part| part.follow(&by, from, self.size))
    }

    /// Changes each image.
    fn each(&mut self, change: &mut dyn FnMut(&mut dyn Picture) -> Result<(), VisionError>) -> Result<(), VisionError> {
        change(self.sample.image_mut())?;
        self.sample.parts_mut().into_iter().filter_map(Part::picture).try_for_each(change)
    }
}

impl<S: HasImage> Sealed for AllParts<'_, S> {
    fn warp(&mut self, size: Size, from: Mapping<'_>, by: Interpolation, fill: [u8; 3]) -> Result<(), VisionError> {
        self.moved(Move::Warp(from, size, by, fill))
    }

    fn repaint(&mut self, change: &mut dyn FnMut(&mut RgbImage)) -> Result<(), VisionError> {
        self.each(&mut |image| image.repaint(change))
    }

    fn turn(&mut self, by: Orientation) {
        self.sample.image_mut().turn(by);
        let before = std::mem::replace(&mut self.size, self.sample.image_mut().dimensions());
        self.sample.parts_mut().into_iter().for_each(|part| part.turn(by, before));
    }

    fn mask_numbers(&mut self) -> Result<Option<&MaskNumbers>, VisionError> {
        let mask = self.sample.parts_mut().into_iter().find_map(|part| match part {
            Part::Mask(mask) => Some(mask),
            _ => None,
        });
        mask.map(Mask::decoded).transpose()
    }
}

impl<S: HasImage> Picture for AllParts<'_, S> {
    fn dimensions(&self) -> (u32, u32) {
        self.size
    }

    fn crop(&mut self, part: CropBox, mode: PaddingMode, fill: [u8; 3]) -> Result<(), VisionError> {
        self.moved(Move::Crop(part, mode, fill))
    }

    fn resized_crop(&mut self, part: CropBox, size: Size, by: Interpolation) -> Result<(), VisionError> {
        self.moved(Move::Resized(part, size, by))
    }

    fn adjust(&mut self, change: Adjust) -> Result<(), VisionError> {
        self.each(&mut |image| image.adjust(change))
    }

    fn erase(&mut self, part: CropBox, colour: [u8; 3]) -> Result<(), VisionError> {
        self.each(&mut |image| image.erase(part, colour))
    }

    fn pixels_mut(&mut self) -> Result<&mut RgbImage, VisionError> {
        self.sample.image_mut().pixels_mut()
    }
}
