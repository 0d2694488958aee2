//! Transforms change a sample that has an image.

use super::{erase::RandomErasing, error::VisionError, rand_augment::RandAugment};
use crate::{
    augment::Augment,
    fault::BoxError,
    rng::KeyedRng,
    vision::{
        colour::{ColorJitter, Grayscale, RandomGrayscale},
        geometry::{
            CenterCrop, RandomCrop, RandomHorizontalFlip, RandomResizedCrop, RandomRotation, RandomVerticalFlip, Resize,
        },
    },
};
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
    /// The image: 8-bit RGB, of any size, but no side may be 0.
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
