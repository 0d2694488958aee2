//! Two images with the boxes of both.

use super::join::{fit, join};
use crate::{
    augment::Combine,
    error::{BoxError, Error},
    images::{
        error::VisionError,
        parameters::{beta, positive},
        parts::{AllParts, Overlay, Part},
        picture::Picture,
        sample::HasImage,
    },
    rng::KeyedRng,
};

/// Mixes an image with another one, and keeps the boxes and points of both: MixUp of detection.
///
/// ```
/// use burn::data::dataset::InMemDataset;
/// use burn_augment::{Augment, KeyedRng, augment::{RandomApply, WithOthers}, image::RgbImage, images::*};
///
/// let sample = || (RgbImage::new(64, 48), Boxes::new([[0.0, 0.0, 9.0, 9.0]], [3], BoxFormat::Xyxy).unwrap());
/// let dataset = || InMemDataset::new((0..10).map(|_| sample()).collect());
/// let mosaic = || WithOthers::new(dataset(), Mosaic::new(64)?);
/// let mix = WithOthers::new(dataset(), MixUpBoxes::new(32.0)?)?.changed(mosaic()?); // with another mosaic
/// let changes = (mosaic()?, RandomApply::new(0.15, mix)?);
/// let (image, boxes) = changes.apply(sample(), &mut KeyedRng::for_sample(42, 0, 0))?;
/// assert_eq!(image.dimensions(), (64, 64));
/// # Ok::<(), burn_augment::BoxError>(())
/// ```
///
/// It works as Ultralytics' `MixUp`, but rounds. Another image of another size is scaled until it fits. Anything but image, boxes and points is that of the
/// first sample. A mask is an error, because its numbers cannot be mixed. For images with labels, [`MixUp`](crate::images::device::MixUp) mixes
/// whole batches.
#[derive(Debug, Clone, Copy)]
pub struct MixUpBoxes(f64);

impl MixUpBoxes {
    /// Draws the share of the image itself from Beta(alpha, alpha). Ultralytics has 32: nearly half.
    ///
    /// # Errors
    /// If `alpha` is not above 0.
    pub fn new(alpha: f64) -> Result<Self, Error> {
        Ok(Self(positive("MixUpBoxes::new", alpha)?))
    }
}

impl<S: HasImage> Combine<S> for MixUpBoxes {
    fn others(&self) -> usize {
        1
    }

    fn combine(&self, mut sample: S, others: Vec<S>, rng: &mut KeyedRng) -> Result<S, BoxError> {
        let is_mask = |part: &Part<'_>| match part {
            Part::Masks(masks) => !masks.is_empty(),
            part => matches!(part, Part::Mask(_)),
        };
        if sample.parts_mut().iter().any(is_mask) {
            return Err(VisionError::of_part(
                "masks",
                "cannot be mixed",
                "leave them out, or use `Mosaic` or `CopyPaste`",
            )
            .into());
        }
        let (share, size) = (beta(self.0, rng), AllParts::of(&mut sample)?.dimensions());
        for mut other in others {
            fit(&mut other, size)?;
            join(&mut sample, &mut other, &Overlay::Mixed(share as f32))?;
        }
        Ok(sample)
    }
}
