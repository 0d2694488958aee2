//! How transforms change a sample: by the image that it has.

use super::{
    erase::RandomErasing, error::VisionError, picture::Picture, rand_augment::RandAugment,
    trivial_augment::TrivialAugmentWide,
};
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

/// A sample with an image, which the transforms change.
///
/// ```
/// use burn_pinned::vision::{HasImage, Image};
///
/// struct Sample { image: Image, label: u8 }
/// impl HasImage for Sample {
///     type Image = Image; // or `RgbImage`
///     fn image_mut(&mut self) -> &mut Image {
///         &mut self.image
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no image that a transform could change",
    label = "this sample does not implement `HasImage`",
    note = "write `impl HasImage for {Self}` with its `Image` or `RgbImage`, or use a pair `(image, label)` as the sample"
)]
pub trait HasImage {
    /// The image's type.
    type Image: Picture;

    /// The image: 8-bit RGB, of any size, but no side may be 0.
    fn image_mut(&mut self) -> &mut Self::Image;
}

impl<P: Picture> HasImage for P {
    type Image = P;

    fn image_mut(&mut self) -> &mut P {
        self
    }
}

/// An image and what belongs to it: a label, a file's name.
impl<P: Picture, T> HasImage for (P, T) {
    type Image = P;

    fn image_mut(&mut self) -> &mut P {
        &mut self.0
    }
}

/// One implementation for each type: `impl<T: Transform> Augment for T` would overlap with that for closures.
macro_rules! augments {
    ($($transform:ty),+ $(,)?; $picture:ident => $image:expr) => {$(
        impl<I: HasImage> Augment<I> for $transform {
            fn apply(&self, mut sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
                let $picture = sample.image_mut();
                let (width, height) = $picture.dimensions();
                if width == 0 || height == 0 {
                    return Err(VisionError::NoPixels.into());
                }
                self.change($image, rng)?;
                Ok(sample)
            }
        }
    )+};
}

// Transforms ask for pixels only if they need them.
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
    RandomVerticalFlip,
    Resize,
    TrivialAugmentWide;
    picture => picture
);

augments!(RandomRotation; picture => picture.pixels_mut()?);
