//! Points of an image.

use super::moves::mirror;
use crate::vision::{
    error::VisionError,
    geometry::{Matrix, Mirror},
};

/// Points of an image, which move with it: torchvision's `KeyPoints`.
///
/// ```
/// use burn_pinned::{Augment, KeyedRng, vision::{CenterCrop, Points}};
///
/// let sample = (image::RgbImage::new(100, 80), Points::new([[50.0, 40.0], [5.0, 7.5]])?);
/// let (_, points) = CenterCrop::new(60)?.apply(sample, &mut KeyedRng::for_order(1, 0))?;
/// assert_eq!(points.xy(), [[30.0, 30.0], [-15.0, -2.5]]);
/// assert_eq!(points.within((60, 60)), [true, false]);
/// # Ok::<(), burn_pinned::BoxError>(())
/// ```
///
/// Places are `[x, y]`, in pixels from the top left corner. As in torchvision 0.24, all points stay, in their order,
/// also those that a change moves outside (`torchvision.transforms.v2.functional.crop_keypoints`, `resize_keypoints`,
/// `affine_keypoints`). There too, a flip takes the middle of the first pixel for 0, and all else its left edge: x
/// becomes `width - 1 - x` (`horizontal_flip_keypoints`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Points(Vec<[f32; 2]>);

impl Points {
    /// Takes points `[x, y]`, in pixels. They may lie outside.
    ///
    /// # Errors
    /// If a number is not finite.
    pub fn new(points: impl Into<Vec<[f32; 2]>>) -> Result<Self, VisionError> {
        let points = points.into();
        match points.iter().find(|point| !point.iter().all(|number| number.is_finite())) {
            None => Ok(Self(points)),
            Some(point) => Err(VisionError::Part {
                part: "points",
                problem: format!("have {point:?}"),
                cure: "leave such a point out, or give it a place outside the image",
            }),
        }
    }

    /// The points. `row.write("points", points.xy().as_flattened())` writes them into a field of `[points, 2]` of F32.
    pub fn xy(&self) -> &[[f32; 2]] {
        &self.0
    }

    /// Says of each point whether it lies within an image of this width and height.
    pub fn within(&self, (width, height): (u32, u32)) -> Vec<bool> {
        let within = |[x, y]: &[f32; 2]| (0.0..width as f32).contains(x) && (0.0..height as f32).contains(y);
        self.0.iter().map(within).collect()
    }

    pub(super) fn map(&mut self, matrix: Matrix) {
        self.0.iter_mut().for_each(|point| *point = matrix.apply(point.map(f64::from)).map(|number| number as f32));
    }

    pub(super) fn mirror(&mut self, by: Mirror, (width, height): (u32, u32)) {
        self.map(mirror(by, [f64::from(width) - 1.0, f64::from(height) - 1.0]));
    }
}
