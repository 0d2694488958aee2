//! Images: decoding, the usual random changes, and mixing of batches on the device.
//!
//! ```
//! use burn_pinned::{Augment, KeyedRng, vision::*};
//! use image::RgbImage;
//!
//! let train = (
//!     RandomResizedCrop::new(224)?,
//!     RandomHorizontalFlip::new(0.5)?,
//!     ColorJitter::new().brightness(0.4)?.contrast(0.4)?.saturation(0.4)?,
//!     RandomErasing::new(0.25)?,
//! );
//! let sample = (RgbImage::new(500, 375), 3usize); // an image and its label
//! let (image, label) = train.apply(sample, &mut KeyedRng::for_order(1, 0))?;
//! assert_eq!((image.dimensions(), label), ((224, 224), 3));
//! # Ok::<(), burn_pinned::BoxError>(())
//! ```
//!
//! Names, parameters, defaults and distributions are those of torchvision's `transforms.v2`
//! (<https://docs.pytorch.org/vision/stable/transforms.html>); what differs is said at each item. Transforms work on 8-bit RGB
//! images of the crate [`image`], and on any sample that [has one](HasImage). A wrong parameter is an error of the method that
//! takes it. Arithmetic is of integers, or of floats whose result is the same on every CPU: equal images and a seed give equal
//! bytes. Decoders make no such promise.
//!
//! - Files: [`open`], [`decode`], [`Limits`].
//! - Geometry: [`RandomResizedCrop`], [`RandomCrop`], [`CenterCrop`], [`Resize`], [`RandomHorizontalFlip`],
//!   [`RandomVerticalFlip`], [`RandomRotation`].
//! - Colour: [`ColorJitter`], [`Grayscale`], [`RandomGrayscale`].
//! - [`RandomErasing`], [`RandAugment`].
//! - Several: a tuple, [`RandomApply`](crate::RandomApply), [`OneOf`](crate::OneOf).
//! - In a collate: [`write_chw`] on the worker, [`device`] in `finish`.

mod affine;
mod chw;
mod colour;
mod crop;
mod decode;
pub mod device;
mod draw;
mod erase;
mod error;
mod flip;
mod jitter;
mod pad;
mod rand_augment;
mod resize;
mod resized_crop;
mod riff;
mod rotate;
mod size;
mod tone;

pub use chw::write_chw;
pub use crop::{CenterCrop, CropBox, RandomCrop};
pub use decode::{Limits, decode, open};
pub use draw::Spread;
pub use erase::{Erased, RandomErasing};
pub use error::VisionError;
pub use flip::{RandomHorizontalFlip, RandomVerticalFlip};
pub use jitter::{Adjust, ColorJitter, Grayscale, RandomGrayscale};
pub use pad::PaddingMode;
pub use rand_augment::{RandAugment, RandAugmentOp};
pub use resize::{Interpolation, Resize};
pub use resized_crop::RandomResizedCrop;
pub use rotate::RandomRotation;
pub use size::Size;

use crate::{augment::Augment, error::BoxError, rng::KeyedRng};
use image::RgbImage;

/// A sample with an image, which the transforms change.
///
/// ```
/// use burn_pinned::vision::HasImage;
/// use image::RgbImage;
///
/// struct Sample { image: RgbImage, label: u8 }
/// impl HasImage for Sample {
///     fn image_mut(&mut self) -> &mut RgbImage {
///         &mut self.image
///     }
/// }
/// ```
pub trait HasImage {
    /// The image: 8-bit RGB, of any size but without a side of 0.
    fn image_mut(&mut self) -> &mut RgbImage;
}

impl HasImage for RgbImage {
    fn image_mut(&mut self) -> &mut RgbImage {
        self
    }
}

/// An image and what belongs to it: a label, a file's name.
impl<T> HasImage for (RgbImage, T) {
    fn image_mut(&mut self) -> &mut RgbImage {
        &mut self.0
    }
}

/// One implementation for each type: `impl<T: Transform> Augment for T` would overlap with that for closures.
macro_rules! augments {
    ($($transform:ty),+ $(,)?) => {$(
        impl<I: HasImage> Augment<I> for $transform {
            fn apply(&self, mut sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
                let image = sample.image_mut();
                if image.width() == 0 || image.height() == 0 {
                    return Err(VisionError::NoPixels.into());
                }
                self.change(image, rng)?;
                Ok(sample)
            }
        }
    )+};
}

augments!(
    CenterCrop,
    ColorJitter,
    Grayscale,
    RandAugment,
    RandomCrop,
    RandomErasing,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
);
