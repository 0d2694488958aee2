//! TrivialAugment: one operation of any strength, chosen at random.

use super::{
    error::VisionError,
    geometry::{Interpolation, warp_options},
    picture::{Picture, Transform},
    rand_augment::{OpKind, RandAugmentOp, Strengths},
};
use crate::{error::Error, rng::KeyedRng};
use rand::RngExt;

/// Makes one change to each image. It is drawn from [`RandAugmentOp`], all equally likely.
///
/// Its strength is drawn too: all steps from none to the greatest are equally likely.
///
/// ```
/// use burn_augment::images::{Interpolation, TrivialAugmentWide};
///
/// let augment = TrivialAugmentWide::new().interpolation(Interpolation::Bilinear).fill([124, 116, 104]);
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// The method is that of Müller and Hutter, "TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation", 2021,
/// with the wide ranges of strengths. Operations, strengths and defaults are torchvision's: 31 steps, nearest
/// interpolation, black fill. All its fourteen operations are included.
///
/// Shifts are up to 32 pixels for an image of any size. They can leave nothing of an image of 32 x 32.
///
/// Bilinear borders differ from torchvision's, as those of [`RandAugment`](super::RandAugment) do.
#[derive(Debug, Clone, Copy)]
pub struct TrivialAugmentWide {
    bins: usize,
    interpolation: Interpolation,
    fill: [u8; 3],
}

impl TrivialAugmentWide {
    /// Makes one change, with one of 31 strengths.
    pub fn new() -> Self {
        Self { bins: 31, interpolation: Interpolation::Nearest, fill: [0; 3] }
    }

    /// Sets the number of steps of the strength. Default: 31.
    ///
    /// # Errors
    /// If there are fewer than two steps.
    pub fn num_magnitude_bins(mut self, bins: usize) -> Result<Self, Error> {
        if bins < 2 {
            let problem = format!("{bins} is too few bins: the first is no change, and the last is the most");
            return Err(Error::config("TrivialAugmentWide::num_magnitude_bins", problem, "give at least two bins"));
        }
        self.bins = bins;
        Ok(self)
    }

    /// Draws the change to make.
    pub fn draw(&self, rng: &mut KeyedRng) -> RandAugmentOp {
        let bin = rng.random_range(0..self.bins);
        let most = Strengths { shear: 0.99, degrees: 135.0, factor: 0.99, bits: [8.0, 2.0], shifts: [32.0; 2] };
        most.draw(&OpKind::ALL, bin as f64 / (self.bins - 1) as f64, rng)
    }
}

warp_options!(TrivialAugmentWide);

impl Transform for TrivialAugmentWide {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        self.draw(rng).apply(image, self.interpolation, self.fill)
    }
}

impl Default for TrivialAugmentWide {
    /// The same as [`new`](Self::new).
    fn default() -> Self {
        Self::new()
    }
}
