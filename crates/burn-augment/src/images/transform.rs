//! How transforms change a sample: its image and all its parts.

use super::{error::VisionError, parts::AllParts, picture::Transform, sample::HasImage};
use crate::{augment::Augment, error::BoxError, rng::KeyedRng};

/// A change that is drawn from a generator, and from the boxes of a sample.
pub(super) trait BoxTransform {
    /// Changes a sample.
    fn change<S: HasImage>(&self, all: &mut AllParts<'_, S>, rng: &mut KeyedRng) -> Result<(), VisionError>;
}

/// One implementation for each type: `impl<T: Transform> Augment for T` would overlap with that for closures.
macro_rules! augments {
    ($($transform:ident),+ $(,)?) => {$(
        impl<I: HasImage> Augment<I> for super::$transform {
            fn apply(&self, mut sample: I, rng: &mut KeyedRng) -> Result<I, BoxError> {
                let mut all = AllParts::of(&mut sample)?;
                self.change(&mut all, rng)?;
                all.clip();
                Ok(sample)
            }
        }
    )+};
}

augments!(
    BBoxSafeRandomCrop,
    AugMix,
    AutoAugment,
    CenterCrop,
    CLAHE,
    ColorJitter,
    D4,
    ElasticTransform,
    GaussianBlur,
    GaussianNoise,
    Grayscale,
    LetterBox,
    JPEG,
    Pad,
    RandAugment,
    RandomAdjustSharpness,
    RandomAffine,
    RandomAutocontrast,
    RandomChannelPermutation,
    RandomCrop,
    RandomEqualize,
    RandomErasing,
    RandomGamma,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomInvert,
    RandomIoUCrop,
    RandomPerspective,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomResize,
    RandomResizedCrop,
    RandomRotate90,
    RandomRotation,
    RandomSolarize,
    RandomVerticalFlip,
    RandomZoomOut,
    Resize,
    TrivialAugmentWide,
);
