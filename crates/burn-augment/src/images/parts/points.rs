//! Points of an image.

use super::{moves::turned, overlay::Overlay};
use crate::images::error::VisionError;
use image::metadata::Orientation;
use std::mem;

/// The place of a point that cannot be seen. No change moves it.
pub(crate) const HIDDEN: [f32; 2] = [-1e6; 2];

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
pub struct Points {
    xy: Vec<[f32; 2]>,
    /// Of each point, its index at first.
    order: Vec<usize>,
    /// The indices of points that change places when the image is mirrored.
    pairs: Vec<(usize, usize)>,
}

impl Points {
    /// Takes points `[x, y]`, in pixels. They may lie outside.
    ///
    /// # Errors
    /// If a number is not finite.
    pub fn new(points: impl Into<Vec<[f32; 2]>>) -> Result<Self, VisionError> {
        let points = points.into();
        match points.iter().find(|point| !point.iter().all(|number| number.is_finite())) {
            None => Ok(Self { order: (0..points.len()).collect(), xy: points, pairs: Vec::new() }),
            Some(point) => Err(VisionError::of_part(
                "points",
                format!("have {point:?}"),
                "leave such a point out, or give it a place outside the image",
            )),
        }
    }

    /// Sets the indices of points that change places when the image is mirrored, such as left and right joints: by
    /// flips, and by half of the draws of [`D4`](crate::images::D4). Default: none.
    ///
    /// ```
    /// use burn_augment::{Augment, KeyedRng, images::{Points, RandomHorizontalFlip}};
    ///
    /// let nose_and_eyes = Points::new([[50.0, 40.0], [60.0, 30.0], [42.0, 31.0]])?.pairs([(1, 2)])?;
    /// let flip = RandomHorizontalFlip::new(1.0)?;
    /// let (_, points) = flip.apply((image::RgbImage::new(101, 80), nose_and_eyes), &mut KeyedRng::for_order(1, 0))?;
    /// assert_eq!(points.xy(), [[50.0, 40.0], [58.0, 31.0], [40.0, 30.0]]);
    /// assert_eq!(points.order(), [0, 2, 1]);
    /// # Ok::<(), burn_augment::BoxError>(())
    /// ```
    ///
    /// The pairs of COCO's 17 joints are `(0..8).map(|n| (2 * n + 1, 2 * n + 2))`. Each person has `Points` of its own:
    /// use a `Vec<Points>`.
    ///
    /// # Errors
    /// If there is no point of an index, or an index stands twice.
    pub fn pairs(mut self, pairs: impl IntoIterator<Item = (usize, usize)>) -> Result<Self, VisionError> {
        self.pairs = pairs.into_iter().collect();
        let mut free = vec![true; self.xy.len()];
        let mut takes = |index: usize| free.get_mut(index).is_some_and(mem::take);
        match self.pairs.iter().find(|(left, right)| !(takes(*left) && takes(*right))) {
            None => Ok(self),
            Some(pair) => Err(VisionError::of_part(
                "points",
                format!("are {}, and have the pair {pair:?}", free.len()),
                "give indices of these points, each in one pair",
            )),
        }
    }

    /// Of each point, the index that it had in [`new`](Self::new): for your own values of points, such as COCO's
    /// visibility, which change places with them.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The points. `row.write("points", points.xy().as_flattened())` writes them into a field of `[points, 2]` of F32.
    pub fn xy(&self) -> &[[f32; 2]] {
        &self.xy
    }

    /// Returns for each point whether it lies within an image of this width and height.
    pub fn within(&self, (width, height): (u32, u32)) -> Vec<bool> {
        let within = |[x, y]: &[f32; 2]| (0.0..width as f32).contains(x) && (0.0..height as f32).contains(y);
        self.xy.iter().map(within).collect()
    }

    pub(super) fn map(&mut self, place: impl Fn([f32; 2]) -> [f32; 2]) {
        self.xy.iter_mut().filter(|point| **point != HIDDEN).for_each(|point| *point = place(*point));
    }

    /// Takes the points of another image too.
    pub(super) fn append(&mut self, other: &mut Self) {
        let count = self.xy.len();
        self.xy.append(&mut other.xy);
        self.order.extend(other.order.drain(..).map(|index| count + index));
        self.pairs.extend(other.pairs.drain(..).map(|(left, right)| (count + left, count + right)));
    }

    /// Hides the points whose pixels are not those of their image any more.
    pub(super) fn cover(&mut self, by: &Overlay<'_>, are_theirs: bool) {
        let is_seen = |[x, y]: &[f32; 2]| x.min(*y) < 0.0 || by.is_theirs(*x as u32, *y as u32) != Some(!are_theirs);
        self.xy.iter_mut().filter(|point| !is_seen(point)).for_each(|point| *point = HIDDEN);
    }

    /// Hides the points outside an image of this size, which would come into sight beside another one.
    pub(super) fn hide_outside(&mut self, size: (u32, u32)) {
        let within = self.within(size);
        self.xy.iter_mut().zip(within).filter(|(_, within)| !within).for_each(|(point, _)| *point = HIDDEN);
    }

    pub(super) fn turn(&mut self, by: Orientation, size: (u32, u32)) {
        let matrix = turned(by, size);
        self.map(|place| matrix.map_place(place));
        // Each turn is a mirror.
        for (left, right) in &self.pairs {
            self.xy.swap(*left, *right);
            self.order.swap(*left, *right);
        }
    }
}
