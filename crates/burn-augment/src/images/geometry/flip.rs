//! Random flips.

use crate::{
    augment::probability,
    error::Error,
    images::{
        error::VisionError,
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};
use rand::RngExt;

macro_rules! random_flips {
    ($($(#[$docs:meta])* $name:ident by $flip:ident;)+) => {$(
        $(#[$docs])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name {
            p: f64,
        }

        impl $name {
            /// Mirrors with probability `p`.
            ///
            /// # Errors
            /// If `p` is not from 0 to 1.
            pub fn new(p: f64) -> Result<Self, Error> {
                Ok(Self { p: probability(concat!(stringify!($name), "::new"), p)? })
            }

            /// Draws whether an image is mirrored.
            pub fn draw(&self, rng: &mut KeyedRng) -> bool {
                rng.random_bool(self.p)
            }
        }

        impl Transform for $name {
            fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
                if self.draw(rng) {
                    image.$flip();
                }
                Ok(())
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self { p: 0.5 }
            }
        }
    )+};
}

random_flips! {
    /// Mirrors left to right, with a probability.
    ///
    /// ```
    /// use burn_augment::images::RandomHorizontalFlip;
    ///
    /// let flip = RandomHorizontalFlip::default(); // p = 0.5
    /// assert!(RandomHorizontalFlip::new(1.5).is_err());
    /// ```
    RandomHorizontalFlip by flip_horizontal;

    /// Mirrors top to bottom, with a probability: 0.5 by default. This is not a rotation.
    RandomVerticalFlip by flip_vertical;
}
