//! Random flips.

use crate::{
    augment::probability,
    fault::Error,
    rng::KeyedRng,
    vision::{
        error::VisionError,
        picture::{Picture, Transform},
    },
};
use rand::RngExt;

/// Mirrors left to right, with a probability.
///
/// ```
/// use burn_pinned::vision::RandomHorizontalFlip;
///
/// let flip = RandomHorizontalFlip::default(); // p = 0.5
/// assert!(RandomHorizontalFlip::new(1.5).is_err());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RandomHorizontalFlip {
    p: f64,
}

impl RandomHorizontalFlip {
    /// Mirrors with probability `p`.
    ///
    /// # Errors
    /// If `p` is not from 0 to 1.
    pub fn new(p: f64) -> Result<Self, Error> {
        Ok(Self { p: probability("RandomHorizontalFlip::new", p)? })
    }

    /// Draws whether an image is mirrored.
    pub fn draw(&self, rng: &mut KeyedRng) -> bool {
        rng.random_bool(self.p)
    }
}

impl Transform for RandomHorizontalFlip {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        if self.draw(rng) {
            image.flip_horizontal();
        }
        Ok(())
    }
}

impl Default for RandomHorizontalFlip {
    fn default() -> Self {
        Self { p: 0.5 }
    }
}

/// Mirrors top to bottom, which is no rotation, with a probability; 0.5 by default.
#[derive(Debug, Clone, Copy)]
pub struct RandomVerticalFlip {
    p: f64,
}

impl RandomVerticalFlip {
    /// Mirrors with probability `p`.
    ///
    /// # Errors
    /// If `p` is not from 0 to 1.
    pub fn new(p: f64) -> Result<Self, Error> {
        Ok(Self { p: probability("RandomVerticalFlip::new", p)? })
    }

    /// Draws whether an image is mirrored.
    pub fn draw(&self, rng: &mut KeyedRng) -> bool {
        rng.random_bool(self.p)
    }
}

impl Transform for RandomVerticalFlip {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        if self.draw(rng) {
            image.flip_vertical();
        }
        Ok(())
    }
}

impl Default for RandomVerticalFlip {
    fn default() -> Self {
        Self { p: 0.5 }
    }
}
