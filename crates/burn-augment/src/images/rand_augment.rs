//! RandAugment: a number of operations of one strength, chosen at random.

mod operation;

use super::{
    error::VisionError,
    geometry::{Interpolation, warp_options},
    picture::{Picture, Transform},
};
use crate::{error::Error, rng::KeyedRng};

pub use operation::RandAugmentOp;
pub(super) use operation::{OpKind, Strengths};

/// Makes `num_ops` changes to each image. Each is drawn from [`RandAugmentOp`], all equally likely.
///
/// ```
/// use burn_augment::images::RandAugment;
///
/// let augment = RandAugment::new(2, 9)?.fill([124, 116, 104]);
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// The method is that of Cubuk et al., "RandAugment: Practical automated data augmentation with a reduced search
/// space", 2019. Operations, strengths and defaults are torchvision's: two operations, magnitude 9 of 31, nearest
/// interpolation, black fill. All its fourteen operations are included.
///
/// Bilinear borders differ from torchvision's with a fill, as those of a [`RandomRotation`](super::RandomRotation) do.
#[derive(Debug, Clone, Copy)]
pub struct RandAugment {
    num_ops: usize,
    magnitude: usize,
    bins: usize,
    interpolation: Interpolation,
    fill: [u8; 3],
}

impl RandAugment {
    /// Makes `num_ops` changes with a magnitude from 0 to 30. torchvision's defaults are 2 and 9.
    ///
    /// # Errors
    /// If the magnitude is beyond 30.
    pub fn new(num_ops: usize, magnitude: usize) -> Result<Self, Error> {
        Self { num_ops, magnitude, ..Self::default() }.checked("RandAugment::new")
    }

    /// Sets the number of steps of the strength. The magnitude is one of these steps, counted from 0. Default: 31.
    ///
    /// # Errors
    /// If the magnitude is not one of the steps, or if there are fewer than two steps.
    pub fn num_magnitude_bins(self, bins: usize) -> Result<Self, Error> {
        Self { bins, ..self }.checked("RandAugment::num_magnitude_bins")
    }

    fn checked(self, option: &'static str) -> Result<Self, Error> {
        let Self { magnitude, bins, .. } = self;
        if bins >= 2 && magnitude < bins {
            return Ok(self);
        }
        let problem = format!("magnitude {magnitude} does not exist with {bins} bins");
        Err(Error::config(option, problem, "give a magnitude below the number of bins, and at least two bins"))
    }

    /// Draws the changes to make to an image of `width` x `height`, in their order.
    pub fn draw(&self, width: u32, height: u32, rng: &mut KeyedRng) -> Vec<RandAugmentOp> {
        let (most, share) = (Strengths::new(width, height), self.magnitude as f64 / (self.bins - 1) as f64);
        (0..self.num_ops).map(|_| most.draw(&OpKind::ALL, share, rng)).collect()
    }
}

warp_options!(RandAugment);

impl Transform for RandAugment {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        self.draw(width, height, rng).into_iter().try_for_each(|op| op.apply(image, self.interpolation, self.fill))
    }
}

impl Default for RandAugment {
    /// Two operations of magnitude 9 of 31.
    fn default() -> Self {
        Self { num_ops: 2, magnitude: 9, bins: 31, interpolation: Interpolation::Nearest, fill: [0; 3] }
    }
}
