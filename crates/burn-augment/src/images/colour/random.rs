//! One change of colour, made with a probability.

use crate::{
    augment::probability,
    error::Error,
    images::{
        error::VisionError,
        geometry::Interpolation,
        parameters::checked,
        picture::{Picture, Transform},
        rand_augment::RandAugmentOp,
    },
    rng::KeyedRng,
};
use rand::RngExt;

macro_rules! random_changes {
    ($($(#[$docs:meta])* $name:ident($($amount:ident: $type:ty)?) makes $change:expr;)+) => {$(
        $(#[$docs])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name {
            p: f64,
            change: RandAugmentOp,
        }

        impl $name {
            /// Makes the change with probability `p`. torchvision's default is 0.5, and 0.1 for [`RandomGrayscale`].
            ///
            /// # Errors
            /// If `p` is not from 0 to 1, or another parameter is out of its range.
            pub fn new($($amount: $type,)? p: f64) -> Result<Self, Error> {
                Ok(Self { p: probability(concat!(stringify!($name), "::new"), p)?, change: $change })
            }
        }

        impl Transform for $name {
            fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
                if !rng.random_bool(self.p) {
                    return Ok(());
                }
                self.change.apply(image, Interpolation::Nearest, [0; 3])
            }
        }
    )+};
}

random_changes! {
    /// Makes an image grey, with a probability: 0.1 by default.
    RandomGrayscale() makes RandAugmentOp::Color(0.0);

    /// Stretches each channel to the whole range of 0 to 255, with a probability.
    ///
    /// ```
    /// let stretch = burn_augment::images::RandomAutocontrast::new(0.5)?;
    /// # Ok::<(), burn_augment::Error>(())
    /// ```
    ///
    /// See `torchvision.transforms.v2.functional.autocontrast`.
    RandomAutocontrast() makes RandAugmentOp::AutoContrast;

    /// Equalizes the histogram of each channel, with a probability.
    ///
    /// ```
    /// let flatten = burn_augment::images::RandomEqualize::new(0.5)?;
    /// # Ok::<(), burn_augment::Error>(())
    /// ```
    ///
    /// See `torchvision.transforms.v2.functional.equalize`.
    RandomEqualize() makes RandAugmentOp::Equalize;

    /// Inverts all bytes, with a probability.
    ///
    /// ```
    /// let negative = burn_augment::images::RandomInvert::new(0.5)?;
    /// # Ok::<(), burn_augment::Error>(())
    /// ```
    ///
    /// See `torchvision.transforms.v2.functional.invert`.
    RandomInvert() makes RandAugmentOp::Solarize(0.0);

    /// Inverts bytes at or above a threshold, with a probability.
    ///
    /// ```
    /// let solarize = burn_augment::images::RandomSolarize::new(128, 0.2)?;
    /// # Ok::<(), burn_augment::Error>(())
    /// ```
    ///
    /// See `torchvision.transforms.v2.functional.solarize`.
    RandomSolarize(threshold: u8) makes RandAugmentOp::Solarize(threshold.into());

    /// Keeps only the highest bits of each byte, 0 to 8, with a probability.
    ///
    /// ```
    /// let coarse = burn_augment::images::RandomPosterize::new(4, 0.5)?;
    /// # Ok::<(), burn_augment::Error>(())
    /// ```
    ///
    /// See `torchvision.transforms.v2.functional.posterize`.
    RandomPosterize(bits: u8) makes match bits {
        0..=8 => RandAugmentOp::Posterize(bits),
        _ => return Err(Error::config("RandomPosterize::new", format!("a byte has no {bits} bits"), "give 0 to 8")),
    };

    /// Blurs with a factor below 1, or sharpens with a factor above 1, with a probability. 0 blurs most.
    ///
    /// ```
    /// let sharpen = burn_augment::images::RandomAdjustSharpness::new(2.0, 0.5)?;
    /// # Ok::<(), burn_augment::Error>(())
    /// ```
    ///
    /// See `torchvision.transforms.v2.functional.adjust_sharpness`.
    RandomAdjustSharpness(factor: f32) makes {
        RandAugmentOp::Sharpness(checked("RandomAdjustSharpness::new", factor.into(), 0.0, f64::MAX)? as f32)
    };
}

impl Default for RandomGrayscale {
    fn default() -> Self {
        Self { p: 0.1, change: RandAugmentOp::Color(0.0) }
    }
}
