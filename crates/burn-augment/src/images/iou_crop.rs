//! The crop of SSD's training.

use super::{
    error::VisionError,
    geometry::{CropBox, PaddingMode},
    parameters::Interval,
    parts::AllParts,
    picture::Picture,
    sample::HasImage,
    transform::BoxTransform,
};
use crate::{error::Error, rng::KeyedRng};
use rand::{RngExt, seq::IndexedRandom};

/// Cuts a part of random size and place that overlaps one of the sample's [`Boxes`](super::Boxes) by at least a drawn
/// share. Boxes with their centre outside the part are removed, with their labels.
///
/// ```
/// use burn_augment::{Augment, KeyedRng, images::{BoxFormat, Boxes, RandomIoUCrop}};
///
/// let crop = RandomIoUCrop::new().scale(0.3, 1.0)?;
/// let boxes = Boxes::new([[60.0, 50.0, 120.0, 150.0]], [1], BoxFormat::Xyxy)?;
/// let sample = (image::RgbImage::new(300, 200), boxes);
/// let (image, boxes) = crop.apply(sample, &mut KeyedRng::for_order(1, 0))?;
/// assert_eq!(boxes.len(), 1);
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// It works as torchvision's `RandomIoUCrop` with `SanitizeBoundingBoxes` after it (and Liu et al., "SSD: Single Shot
/// MultiBox Detector", 2015). The overlap is the intersection of the part and a box over their union. Its least value
/// is drawn from a list. After 40 parts with too little overlap, another value is drawn. A value of 1 leaves the sample
/// unchanged, and so do 1,000 values without a part. A sample without `Boxes` is an error.
#[derive(Debug, Clone)]
pub struct RandomIoUCrop {
    scale: Interval,
    ratio: Interval,
    overlaps: Vec<f64>,
    trials: usize,
}

impl RandomIoUCrop {
    /// Cuts parts with sides of 0.3 to 1 times the image's, and a width / height of 1/2 to 2.
    pub fn new() -> Self {
        Self {
            scale: Interval::new(0.3, 1.0),
            ratio: Interval::new(0.5, 2.0),
            overlaps: vec![0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0],
            trials: 40,
        }
    }

    /// Sets the least and the greatest share of each side. Default: 0.3 and 1.
    ///
    /// # Errors
    /// Unless `0 < low <= high <= 1`.
    pub fn scale(mut self, low: f64, high: f64) -> Result<Self, Error> {
        self.scale = Interval::checked("RandomIoUCrop::scale", low, high, f64::MIN_POSITIVE, 1.0)?;
        Ok(self)
    }

    /// Sets the least and the greatest width / height. Default: 1/2 and 2.
    ///
    /// # Errors
    /// Unless `0 < low <= high`.
    pub fn aspect_ratio(mut self, low: f64, high: f64) -> Result<Self, Error> {
        self.ratio = Interval::checked("RandomIoUCrop::aspect_ratio", low, high, f64::MIN_POSITIVE, f64::MAX)?;
        Ok(self)
    }

    /// Sets the list of least overlaps, from 0 up. 1 leaves the sample unchanged. Default: 0, 0.1, 0.3, 0.5, 0.7, 0.9,
    /// 1.
    ///
    /// # Errors
    /// If the list is empty, or contains a negative number or NaN.
    pub fn sampler_options(mut self, overlaps: &[f64]) -> Result<Self, Error> {
        if overlaps.is_empty() || !overlaps.iter().all(|overlap| *overlap >= 0.0) {
            let problem = format!("{overlaps:?} are no overlaps");
            return Err(Error::config("RandomIoUCrop::sampler_options", problem, "give one or more numbers from 0 up"));
        }
        self.overlaps = overlaps.into();
        Ok(self)
    }

    /// Sets how many parts are tried for each least overlap. Default: 40.
    pub fn trials(mut self, trials: usize) -> Self {
        self.trials = trials;
        self
    }

    /// Draws the part to cut from an image of `width` x `height` with boxes of left, top, right, bottom. `None` leaves
    /// the image unchanged.
    pub fn draw(&self, width: u32, height: u32, xyxy: &[[f32; 4]], rng: &mut KeyedRng) -> Option<CropBox> {
        const ROUNDS: usize = 1_000;
        for _ in 0..ROUNDS {
            let least = *self.overlaps.choose(rng)?;
            if least >= 1.0 {
                return None;
            }
            for _ in 0..self.trials {
                let [across, down] = [width, height].map(|side| (f64::from(side) * self.scale.uniform(rng)) as u32);
                let ratio = f64::from(across) / f64::from(down);
                if !(self.ratio.low..=self.ratio.high).contains(&ratio) {
                    continue; // also if `down` is 0
                }
                let [left, top] =
                    [width - across, height - down].map(|spare| (f64::from(spare) * rng.random::<f64>()) as i64);
                let part = CropBox { left, top, width: across, height: down };
                let inside = xyxy.iter().filter(|edges| has_middle_of(part, edges));
                if across > 0 && inside.map(|edges| overlap(part, edges)).any(|overlap| overlap >= least) {
                    return Some(part);
                }
            }
        }
        None
    }
}

impl BoxTransform for RandomIoUCrop {
    fn change<S: HasImage>(&self, all: &mut AllParts<'_, S>, rng: &mut KeyedRng) -> Result<(), VisionError> {
        let (width, height) = all.dimensions();
        let boxes = all.boxes("RandomIoUCrop")?;
        let Some(part) = self.draw(width, height, boxes.xyxy(), rng) else { return Ok(()) };
        boxes.retain(|edges, _| has_middle_of(part, edges));
        all.crop(part, PaddingMode::Constant, [0; 3])
    }
}

impl Default for RandomIoUCrop {
    /// The same as [`new`](Self::new).
    fn default() -> Self {
        Self::new()
    }
}

fn edges_of(part: CropBox) -> [f64; 4] {
    let (left, top) = (part.left as f64, part.top as f64);
    [left, top, left + f64::from(part.width), top + f64::from(part.height)]
}

fn has_middle_of(part: CropBox, edges: &[f32; 4]) -> bool {
    let ([left, top, right, bottom], [a, b, c, d]) = (edges_of(part), edges.map(f64::from));
    let (x, y) = ((a + c) / 2.0, (b + d) / 2.0);
    left < x && x < right && top < y && y < bottom
}

/// The area that both have, over the area that either has.
fn overlap(part: CropBox, edges: &[f32; 4]) -> f64 {
    let ([left, top, right, bottom], [a, b, c, d]) = (edges_of(part), edges.map(f64::from));
    let both = (right.min(c) - left.max(a)).max(0.0) * (bottom.min(d) - top.max(b)).max(0.0);
    both / ((right - left) * (bottom - top) + (c - a) * (d - b) - both)
}
