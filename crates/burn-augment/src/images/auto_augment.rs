//! AutoAugment: one of 25 pairs of operations, chosen at random.

use super::{
    error::VisionError,
    geometry::{Interpolation, warp_options},
    picture::{Picture, Transform},
    rand_augment::{
        OpKind::{self, *},
        RandAugmentOp, Strengths,
    },
};
use crate::rng::KeyedRng;
use rand::RngExt;

/// Makes up to two changes to each image. A pair of them is drawn from the 25 pairs of a policy, all equally likely, and
/// each change has a probability and a strength of its own.
///
/// ```
/// use burn_augment::images::{AutoAugment, AutoAugmentPolicy};
///
/// let augment = AutoAugment::new(AutoAugmentPolicy::ImageNet).fill([124, 116, 104]);
/// ```
///
/// The method is that of Cubuk et al., "AutoAugment: Learning Augmentation Policies from Data", 2018. Policies, strengths
/// and defaults are torchvision's: nearest interpolation, black fill.
///
/// Bilinear borders differ from torchvision's with a fill, as those of a [`RandomRotation`](super::RandomRotation) do.
#[derive(Debug, Clone, Copy)]
pub struct AutoAugment {
    policy: AutoAugmentPolicy,
    interpolation: Interpolation,
    fill: [u8; 3],
}

/// The data for which the pairs of an [`AutoAugment`] were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoAugmentPolicy {
    /// ImageNet: colours and rotations.
    #[default]
    ImageNet,
    /// CIFAR-10: colours and shifts.
    Cifar10,
    /// Street View House Numbers: shears and inverted colours.
    Svhn,
}

impl AutoAugment {
    /// Draws from the pairs of this policy.
    pub fn new(policy: AutoAugmentPolicy) -> Self {
        Self { policy, interpolation: Interpolation::Nearest, fill: [0; 3] }
    }

    /// Draws the changes to make to an image of `width` x `height`, in their order: none, one or two.
    pub fn draw(&self, width: u32, height: u32, rng: &mut KeyedRng) -> Vec<RandAugmentOp> {
        let pairs = match self.policy {
            AutoAugmentPolicy::ImageNet => IMAGENET,
            AutoAugmentPolicy::Cifar10 => CIFAR10,
            AutoAugmentPolicy::Svhn => SVHN,
        };
        let (most, pair) = (Strengths::new(width, height), pairs[rng.random_range(0..pairs.len())]);
        let drawn = |(kind, tenths, ninths)| {
            rng.random_ratio(tenths, 10).then(|| most.draw(&[kind], f64::from(ninths) / 9.0, rng))
        };
        pair.into_iter().filter_map(drawn).collect()
    }
}

warp_options!(AutoAugment);

impl Transform for AutoAugment {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        self.draw(width, height, rng).into_iter().try_for_each(|op| op.apply(image, self.interpolation, self.fill))
    }
}

/// Two operations, each with its probability in tenths and its strength in ninths.
type OpPair = [(OpKind, u32, u8); 2];

#[rustfmt::skip]
const IMAGENET: [OpPair; 25] = [
    [(Posterize, 4, 8), (Rotate, 6, 9)], [(Solarize, 6, 5), (AutoContrast, 6, 0)], [(Equalize, 8, 0), (Equalize, 6, 0)],
    [(Posterize, 6, 7), (Posterize, 6, 6)], [(Equalize, 4, 0), (Solarize, 2, 4)], [(Equalize, 4, 0), (Rotate, 8, 8)],
    [(Solarize, 6, 3), (Equalize, 6, 0)], [(Posterize, 8, 5), (Equalize, 10, 0)], [(Rotate, 2, 3), (Solarize, 6, 8)],
    [(Equalize, 6, 0), (Posterize, 4, 6)], [(Rotate, 8, 8), (Color, 4, 0)], [(Rotate, 4, 9), (Equalize, 6, 0)],
    [(Equalize, 0, 0), (Equalize, 8, 0)], [(Invert, 6, 0), (Equalize, 10, 0)], [(Color, 6, 4), (Contrast, 10, 8)],
    [(Rotate, 8, 8), (Color, 10, 2)], [(Color, 8, 8), (Solarize, 8, 7)], [(Sharpness, 4, 7), (Invert, 6, 0)],
    [(ShearX, 6, 5), (Equalize, 10, 0)], [(Color, 4, 0), (Equalize, 6, 0)], [(Equalize, 4, 0), (Solarize, 2, 4)],
    [(Solarize, 6, 5), (AutoContrast, 6, 0)], [(Invert, 6, 0), (Equalize, 10, 0)], [(Color, 6, 4), (Contrast, 10, 8)],
    [(Equalize, 8, 0), (Equalize, 6, 0)],
];

#[rustfmt::skip]
const CIFAR10: [OpPair; 25] = [
    [(Invert, 1, 0), (Contrast, 2, 6)], [(Rotate, 7, 2), (TranslateX, 3, 9)], [(Sharpness, 8, 1), (Sharpness, 9, 3)],
    [(ShearY, 5, 8), (TranslateY, 7, 9)], [(AutoContrast, 5, 0), (Equalize, 9, 0)], [(ShearY, 2, 7), (Posterize, 3, 7)],
    [(Color, 4, 3), (Brightness, 6, 7)], [(Sharpness, 3, 9), (Brightness, 7, 9)], [(Equalize, 6, 0), (Equalize, 5, 0)],
    [(Contrast, 6, 7), (Sharpness, 6, 5)], [(Color, 7, 7), (TranslateX, 5, 8)],
    [(Equalize, 3, 0), (AutoContrast, 4, 0)], [(TranslateY, 4, 3), (Sharpness, 2, 6)],
    [(Brightness, 9, 6), (Color, 2, 8)], [(Solarize, 5, 2), (Invert, 0, 0)], [(Equalize, 2, 0), (AutoContrast, 6, 0)],
    [(Equalize, 2, 0), (Equalize, 6, 0)], [(Color, 9, 9), (Equalize, 6, 0)], [(AutoContrast, 8, 0), (Solarize, 2, 8)],
    [(Brightness, 1, 3), (Color, 7, 0)], [(Solarize, 4, 5), (AutoContrast, 9, 0)],
    [(TranslateY, 9, 9), (TranslateY, 7, 9)], [(AutoContrast, 9, 0), (Solarize, 8, 3)],
    [(Equalize, 8, 0), (Invert, 1, 0)], [(TranslateY, 7, 9), (AutoContrast, 9, 0)],
];

#[rustfmt::skip]
const SVHN: [OpPair; 25] = [
    [(ShearX, 9, 4), (Invert, 2, 0)], [(ShearY, 9, 8), (Invert, 7, 0)], [(Equalize, 6, 0), (Solarize, 6, 6)],
    [(Invert, 9, 0), (Equalize, 6, 0)], [(Equalize, 6, 0), (Rotate, 9, 3)], [(ShearX, 9, 4), (AutoContrast, 8, 0)],
    [(ShearY, 9, 8), (Invert, 4, 0)], [(ShearY, 9, 5), (Solarize, 2, 6)], [(Invert, 9, 0), (AutoContrast, 8, 0)],
    [(Equalize, 6, 0), (Rotate, 9, 3)], [(ShearX, 9, 4), (Solarize, 3, 3)], [(ShearY, 8, 8), (Invert, 7, 0)],
    [(Equalize, 9, 0), (TranslateY, 6, 6)], [(Invert, 9, 0), (Equalize, 6, 0)], [(Contrast, 3, 3), (Rotate, 8, 4)],
    [(Invert, 8, 0), (TranslateY, 0, 2)], [(ShearY, 7, 6), (Solarize, 4, 8)], [(Invert, 6, 0), (Rotate, 8, 4)],
    [(ShearY, 3, 7), (TranslateX, 9, 3)], [(ShearX, 1, 6), (Invert, 6, 0)], [(Solarize, 7, 2), (TranslateY, 6, 7)],
    [(ShearY, 8, 4), (Invert, 8, 0)], [(ShearX, 7, 9), (TranslateY, 8, 3)], [(ShearY, 8, 5), (AutoContrast, 7, 0)],
    [(ShearX, 7, 2), (Invert, 1, 0)],
];
