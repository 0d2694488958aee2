//! A random change of perspective.

use super::{
    affine::{Mapping, from_corners, warp_options},
    matrix::Matrix,
    pixels::Interpolation,
};
use crate::{
    augment::probability,
    error::Error,
    images::{
        error::VisionError,
        parameters::{Interval, Size},
        picture::{Picture, Transform},
    },
    rng::KeyedRng,
};
use rand::RngExt;

/// Moves the four corners of the image inwards, each by a random number of pixels, with a probability.
///
/// ```
/// use burn_augment::images::RandomPerspective;
///
/// let tilt = RandomPerspective::new(0.5, 0.5)?.fill([127; 3]);
/// # Ok::<(), burn_augment::Error>(())
/// ```
///
/// It works as torchvision's `RandomPerspective`. Bilinear borders differ from torchvision's, as those of a
/// [`RandomRotation`](super::RandomRotation) do.
#[derive(Debug, Clone, Copy)]
pub struct RandomPerspective {
    distortion_scale: f64,
    p: f64,
    interpolation: Interpolation,
    fill: [u8; 3],
}

impl RandomPerspective {
    /// Moves corners by up to this share of half a side, with probability `p`. torchvision's defaults are 0.5 and 0.5.
    ///
    /// # Errors
    /// If one of them is not from 0 to 1.
    pub fn new(distortion_scale: f64, p: f64) -> Result<Self, Error> {
        let option = "RandomPerspective::new";
        let distortion_scale = Interval::checked(option, 0.0, distortion_scale, 0.0, 1.0)?.high;
        let p = probability(option, p)?;
        Ok(Self { distortion_scale, p, interpolation: Interpolation::Bilinear, fill: [0; 3] })
    }

    /// Draws where the corner pixels of an image of `width` x `height` move: `[x, y]` of the top left, top right,
    /// bottom right and bottom left one. `None` leaves the image unchanged.
    pub fn draw(&self, width: u32, height: u32, rng: &mut KeyedRng) -> Option<[[u32; 2]; 4]> {
        if !rng.random_bool(self.p) {
            return None;
        }
        let most = [width, height].map(|side| (self.distortion_scale * f64::from(side / 2)) as u32);
        let mut corner = |right: bool, below: bool| {
            let [x, y] = most.map(|most| rng.random_range(0..=most));
            // Inwards from the far ends: `x` and `y` are uniform either way.
            [if right { width - 1 - most[0] + x } else { x }, if below { height - 1 - most[1] + y } else { y }]
        };
        Some([corner(false, false), corner(true, false), corner(true, true), corner(false, true)])
    }
}

warp_options!(RandomPerspective);

impl Transform for RandomPerspective {
    fn change(&self, image: &mut impl Picture, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        let Some(corners) = self.draw(width, height, rng) else { return Ok(()) };
        let back = Matrix::square_to(corners.map(|corner| corner.map(f64::from))).inverse();
        let back = back.then(Matrix::scale_shift([width - 1, height - 1].map(f64::from), [0.0; 2]));
        let inverse = from_corners(back, (width, height));
        // Of an image of a few pixels, two corners may meet.
        if !inverse.is_finite() {
            return Ok(());
        }
        image.warp(Size { height, width }, Mapping::Matrix(inverse), self.interpolation, self.fill)
    }
}
