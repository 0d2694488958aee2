//! A crop that keeps all boxes.

use super::{
    error::VisionError,
    geometry::{CropBox, PaddingMode},
    parts::AllParts,
    picture::Picture,
    sample::HasImage,
    transform::BoxTransform,
};
use crate::{augment::probability, error::Error, rng::KeyedRng};
use rand::RngExt;

/// Cuts a part of random size and place that has all of the sample's [`Boxes`](super::Boxes).
///
/// ```
/// use burn_augment::{Augment, KeyedRng, images::{BBoxSafeRandomCrop, BoxFormat, Boxes, Resize}};
///
/// let crop = (BBoxSafeRandomCrop::new(), Resize::exact([256, 320])?); // albumentations' `RandomSizedBBoxSafeCrop`
/// let boxes = Boxes::new([[60.0, 50.0, 120.0, 150.0], [10.0, 20.0, 30.0, 40.0]], [1, 2], BoxFormat::Xyxy)?;
/// let sample = (image::RgbImage::new(300, 200), boxes);
/// let (image, boxes) = crop.apply(sample, &mut KeyedRng::for_order(1, 0))?;
/// assert_eq!((image.dimensions(), boxes.labels()), ((320, 256), &[1, 2][..]));
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// It works as albumentations' `BBoxSafeRandomCrop`. Each edge of the part is uniform between the outermost box and the
/// border. It is rounded outwards, so that no box loses a share of a pixel. Without boxes, the part has the image's
/// proportions, and its height is uniform from `1 - erosion_rate` times the image's. A sample without `Boxes` is an
/// error.
#[derive(Debug, Clone, Copy, Default)]
#[doc(alias = "RandomSizedBBoxSafeCrop")]
pub struct BBoxSafeRandomCrop {
    erosion_rate: f64,
}

impl BBoxSafeRandomCrop {
    /// Cuts parts with all of each box.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shrinks the rectangle around all boxes by this share of its sides, from 0 to 1, so that parts of the outer boxes
    /// may be cut off. One box alone is not shrunk. With 1, the part is drawn as without boxes. Default: 0.
    ///
    /// # Errors
    /// If the number is not from 0 to 1.
    pub fn erosion_rate(mut self, rate: f64) -> Result<Self, Error> {
        self.erosion_rate = probability("BBoxSafeRandomCrop::erosion_rate", rate)?;
        Ok(self)
    }

    /// Draws the part to cut from an image of `width` x `height`, both above 0, with boxes of left, top, right, bottom.
    pub fn draw(&self, width: u32, height: u32, xyxy: &[[f32; 4]], rng: &mut KeyedRng) -> CropBox {
        let around =
            xyxy.iter().copied().reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])]);
        let Some(around) = around.filter(|_| self.erosion_rate < 1.0) else {
            let least = (f64::from(height) * (1.0 - self.erosion_rate)) as u32;
            let down = rng.random_range(least.max(1)..=height);
            let across = (u64::from(down) * u64::from(width) / u64::from(height)).max(1) as u32;
            let [top, left] = [height - down, width - across].map(|spare| rng.random_range(0..=spare).into());
            return CropBox { left, top, width: across, height: down };
        };
        let [left, top, right, bottom] = around.map(f64::from);
        let rate = if xyxy.len() == 1 { 0.0 } else { self.erosion_rate / 2.0 };
        let mut drawn = |low: f64, high: f64, side: u32| {
            let (side, eroded) = (f64::from(side), (high - low) * rate);
            let (low, high) = ((low + eroded).clamp(0.0, side), (high - eroded).clamp(0.0, side));
            let first = (low * rng.random::<f64>()).floor().min(side - 1.0);
            let end = (high + (side - high) * rng.random::<f64>()).ceil().max(first + 1.0).min(side);
            (first as i64, (end - first) as u32)
        };
        let ((left, width), (top, height)) = (drawn(left, right, width), drawn(top, bottom, height));
        CropBox { left, top, width, height }
    }
}

impl BoxTransform for BBoxSafeRandomCrop {
    fn change<S: HasImage>(&self, all: &mut AllParts<'_, S>, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = all.dimensions();
        let part = self.draw(width, height, all.boxes("BBoxSafeRandomCrop")?.xyxy(), rng);
        all.crop(part, PaddingMode::Constant, [0; 3])
    }
}
