//! How transforms change a sample: by the image that it has, and all that moves with it.

use super::{
    erase::RandomErasing, parts::AllParts, picture::Transform, rand_augment::RandAugment, sample::HasImage,
    trivial_augment::TrivialAugmentWide,
};
use crate::{
    augment::Augment,
    fault::BoxError,
    rng::KeyedRng,
    vision::{
        colour::{
            ColorJitter, GaussianBlur, Grayscale, RandomAdjustSharpness, RandomAutocontrast, RandomEqualize,
            RandomGrayscale, RandomInvert, RandomPosterize, RandomSolarize,
        },
        geometry::{
            CenterCrop, D4, Pad, RandomAffine, RandomCrop, RandomHorizontalFlip, RandomPerspective, RandomResizedCrop,
            RandomRotate90, RandomRotation, RandomVerticalFlip, Resize,
        },
        iou_crop::RandomIoUCrop,
    },
};

/// One implementation for each type: `impl<T: Transform> Augment for T` would overlap with that for closures.
macro_rules! augments {
    ($($transform:ty),+ $(,)?) => {$(
        impl<I: HasImage> Augment<I> for $transform {
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
    CenterCrop,
    ColorJitter,
    D4,
    GaussianBlur,
    Grayscale,
    Pad,
    RandAugment,
    RandomAdjustSharpness,
    RandomAffine,
    RandomAutocontrast,
    RandomCrop,
    RandomEqualize,
    RandomErasing,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomInvert,
    RandomIoUCrop,
    RandomPerspective,
    RandomPosterize,
    RandomResizedCrop,
    RandomRotate90,
    RandomRotation,
    RandomSolarize,
    RandomVerticalFlip,
    Resize,
    TrivialAugmentWide,
);
