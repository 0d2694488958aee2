//! Four images in one.

use super::join::{join, scale};
use crate::{
    augment::Combine,
    error::{BoxError, Error},
    images::{
        error::VisionError,
        geometry::{CropBox, PaddingMode},
        parameters::{GREY, Interval, MAX_SIDE, Size},
        parts::{AllParts, Overlay},
        picture::Picture,
        sample::HasImage,
    },
    rng::KeyedRng,
};
use std::{iter, ops::Range};

/// Puts four images around a point that is drawn, in a square: YOLO's mosaic.
///
/// ```
/// use burn::data::dataset::InMemDataset;
/// use burn_augment::{Augment, KeyedRng, augment::WithOthers, image::RgbImage, images::{BoxFormat, Boxes, Mosaic}};
///
/// let sample = || (RgbImage::new(500, 375), Boxes::new([[0.0, 0.0, 500.0, 375.0]], [3], BoxFormat::Xyxy).unwrap());
/// let dataset = InMemDataset::new((0..10).map(|_| sample()).collect());
/// let mosaic = WithOthers::new(dataset, Mosaic::new(640)?)?; // then e.g. a `RandomAffine`, and a crop to 320
/// let (image, boxes) = mosaic.apply(sample(), &mut KeyedRng::for_sample(42, 0, 0))?;
/// assert_eq!((image.dimensions(), boxes.labels()), ((640, 640), &[3; 4][..]));
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// The longer side of each image is scaled to half of the square. A corner of each image touches the point; what does not fit is cut, and the
/// rest is grey. Boxes, masks, points and second images go with their image. A point that is cut is hidden, far outside. The labels of
/// boxes and the numbers of a mask stay, so they should be classes. Of a `Vec` of masks or points, one for each object, those of the other
/// samples come after those of the first ([`Boxes::indices`](crate::images::Boxes::indices)). Anything else is that of the first sample, such as
/// its label.
///
/// Ultralytics does the same in a square of twice the size, and then cuts out the middle by an affine change.
#[derive(Debug, Clone, Copy)]
pub struct Mosaic {
    side: u32,
    center: Interval,
    fill: [u8; 3],
}

impl Mosaic {
    /// Makes squares of this side, in pixels.
    ///
    /// # Errors
    /// If the side is below 4 or beyond 65,535.
    pub fn new(side: u32) -> Result<Self, Error> {
        if !(4..=MAX_SIDE).contains(&side) {
            let advice = format!("give a side from 4 to {MAX_SIDE}");
            return Err(Error::config("Mosaic::new", format!("{side} pixels are no side of a mosaic"), advice));
        }
        Ok(Self { side, center: Interval::new(0.25, 0.75), fill: GREY })
    }

    /// Sets the least and the greatest place of the point, as a share of the side. Default: 0.25 and 0.75.
    ///
    /// # Errors
    /// Unless `0 <= low <= high <= 1`.
    pub fn center_range(self, low: f64, high: f64) -> Result<Self, Error> {
        Ok(Self { center: Interval::checked("Mosaic::center_range", low, high, 0.0, 1.0)?, ..self })
    }

    /// Sets the colour of what has no image. Default: 114, 114, 114.
    pub fn fill(self, colour: [u8; 3]) -> Self {
        Self { fill: colour, ..self }
    }

    /// Draws the point: a column and a row of the square.
    pub fn draw(&self, rng: &mut KeyedRng) -> [u32; 2] {
        [0; 2].map(|_| ((f64::from(self.side) * self.center.uniform(rng)).round() as u32).clamp(1, self.side - 1))
    }

    /// Puts an image into its cell of the square.
    fn place<S: HasImage>(&self, sample: &mut S, columns: Range<u32>, rows: Range<u32>) -> Result<(), VisionError> {
        let mut all = AllParts::of(sample)?;
        scale(&mut all, Size::from(self.side / 2))?;
        all.hide_points();
        let (width, height) = all.dimensions();
        // In the cells on the left and above, the far edge touches the point.
        let first = |cell: &Range<u32>, size| if cell.start == 0 { i64::from(size) - i64::from(cell.end) } else { 0 };
        let (left, top) = (first(&columns, width), first(&rows, height));
        let cell = CropBox { left, top, width: columns.end - columns.start, height: rows.end - rows.start };
        all.crop(cell, PaddingMode::Constant, self.fill)?;
        all.hide_points();
        let (left, top) = (-i64::from(columns.start), -i64::from(rows.start));
        all.crop(CropBox { left, top, width: self.side, height: self.side }, PaddingMode::Constant, self.fill)?;
        all.clip();
        Ok(())
    }
}

impl<S: HasImage> Combine<S> for Mosaic {
    fn others(&self) -> usize {
        3
    }

    fn combine(&self, sample: S, others: Vec<S>, rng: &mut KeyedRng) -> Result<S, BoxError> {
        let [x, y] = self.draw(rng);
        let [across, down] = [x, y].map(|middle| [0..middle, middle..self.side]);
        let mut mosaic = None;
        for (at, mut sample) in iter::once(sample).chain(others).enumerate() {
            let (columns, rows) = (across[at % 2].clone(), down[at / 2 % 2].clone());
            self.place(&mut sample, columns.clone(), rows.clone())?;
            match &mut mosaic {
                None => mosaic = Some(sample),
                Some(mosaic) => join(mosaic, &mut sample, &Overlay::Cell(columns, rows))?,
            }
        }
        mosaic.ok_or_else(|| VisionError::NoPixels.into()) // there is the first
    }
}
