//! Rotations that move whole pixels: no pixel is mixed, lost or invented.

use crate::{
    images::{
        error::VisionError,
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};
use rand::RngExt;

/// Rotates the image by 0, 90, 180 or 270 degrees, all equally likely, as albumentations' `RandomRotate90`.
///
/// ```
/// use burn_augment::{Augment, KeyedRng, images::RandomRotate90};
///
/// let image = image::RgbImage::new(5, 4);
/// let turned = RandomRotate90.apply(image, &mut KeyedRng::for_order(1, 0))?;
/// assert!([(5, 4), (4, 5)].contains(&turned.dimensions()));
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// Half of the rotations swap width and height. For a batch of images of one size, use squares, or resize afterwards.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomRotate90;

impl RandomRotate90 {
    /// Draws the number of quarter turns, counterclockwise: 0 to 3.
    pub fn draw(&self, rng: &mut KeyedRng) -> u32 {
        rng.random_range(0..4)
    }
}

impl Transform for RandomRotate90 {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        turn(image, self.draw(rng));
        Ok(())
    }
}

/// Applies one of the eight symmetries of a square, all equally likely, as albumentations' `D4`: a rotation of
/// [`RandomRotate90`], with or without a flip before it.
///
/// ```
/// use burn_augment::images::{D4, RandomResizedCrop};
///
/// let satellite = (RandomResizedCrop::new(224)?, D4);
/// # Ok::<(), burn_augment::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct D4;

impl D4 {
    /// Draws whether the image is mirrored left to right, and the number of quarter turns after that, counterclockwise.
    pub fn draw(&self, rng: &mut KeyedRng) -> (bool, u32) {
        let way = rng.random_range(0..8);
        (way >= 4, way % 4)
    }
}

impl Transform for D4 {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (mirrored, turns) = self.draw(rng);
        if mirrored {
            image.flip_horizontal();
        }
        turn(image, turns);
        Ok(())
    }
}

/// Makes quarter turns counterclockwise.
fn turn(image: &mut impl Picture, turns: u32) {
    if turns % 2 == 1 {
        image.transpose();
    }
    if matches!(turns, 2 | 3) {
        image.flip_horizontal();
    }
    if matches!(turns, 1 | 2) {
        image.flip_vertical();
    }
}
