//! Points of an image.

use super::moves::turned;
use crate::images::error::VisionError;
use image::metadata::Orientation;

/// Points of an image, which move with it: torchvision's `KeyPoints`.
///
/// ```
/// use burn_augment::{Augment, KeyedRng, images::{CenterCrop, Points}};
///
/// let sample = (image::RgbImage::new(100, 80), Points::new([[50.0, 40.0], [5.0, 7.5]])?);
/// let (_, points) = CenterCrop::new(60)?.apply(sample, &mut KeyedRng::for_order(1, 0))?;
/// assert_eq!(points.xy(), [[30.0, 30.0], [-15.0, -2.5]]);
/// assert_eq!(points.within((60, 60)), [true, false]);
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// Places are `[x, y]`, in pixels from the top left corner. As in torchvision 0.24, all points stay, in their order,
/// even those that a change moves outside (`torchvision.transforms.v2.functional.crop_keypoints`, `resize_keypoints`,
/// `affine_keypoints`).
///
/// # Which pixel a point names
/// As in torchvision, flips treat a point as the column and row of a pixel: with 4 columns, 0 becomes 3, which is
/// `width - 1 - x` (`horizontal_flip_keypoints`). So do [`D4`](crate::images::D4) and
/// [`RandomRotate90`](crate::images::RandomRotate90), as in albumentations. All other changes measure from the left
/// edge of the first pixel: a resize to 8 columns doubles x, and a [`RandomRotation`](crate::images::RandomRotation) by
/// 180 degrees turns x into `width - x`.
///
/// ```
/// # use burn_augment::{Augment, KeyedRng, images::{Points, RandomHorizontalFlip, Resize}};
/// let sample = (image::RgbImage::new(4, 1), Points::new([[0.0, 0.0]])?); // the first of 4 columns
/// let (image, points) = RandomHorizontalFlip::new(1.0)?.apply(sample, &mut KeyedRng::for_order(1, 0))?;
/// assert_eq!(points.xy(), [[3.0, 0.0]]); // the last one
/// let (_, points) = Resize::exact([2, 8])?.apply((image, points), &mut KeyedRng::for_order(1, 0))?;
/// assert_eq!(points.xy(), [[6.0, 0.0]]); // the first of the two columns that it became
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// If your points are distances from the edge, such as 0.5 for the centre of the first pixel, add 1 after a flip.
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
            Some(point) => Err(VisionError::of_part(
                "points",
                format!("have {point:?}"),
                "leave such a point out, or give it a place outside the image",
            )),
        }
    }

    /// The points. `row.write("points", points.xy().as_flattened())` writes them into a field of `[points, 2]` of F32.
    pub fn xy(&self) -> &[[f32; 2]] {
        &self.0
    }

    /// Returns for each point whether it lies within an image of this width and height.
    pub fn within(&self, (width, height): (u32, u32)) -> Vec<bool> {
        let within = |[x, y]: &[f32; 2]| (0.0..width as f32).contains(x) && (0.0..height as f32).contains(y);
        self.0.iter().map(within).collect()
    }

    pub(super) fn map(&mut self, place: impl Fn([f32; 2]) -> [f32; 2]) {
        self.0.iter_mut().for_each(|point| *point = place(*point));
    }

    pub(super) fn turn(&mut self, by: Orientation, size: (u32, u32)) {
        let matrix = turned(by, size);
        self.map(|place| matrix.map_place(place));
    }
}
