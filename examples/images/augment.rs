//! What happens to images before they are collated: random changes for training, the centre square for validation.

use burn_pinned::{
    Augment, BoxError, Error, KeyedRng,
    vision::{
        ColorJitter, CropBox, HasImage, Interpolation, Picture, RandomHorizontalFlip, RandomResizedCrop, Size,
        TrivialAugmentWide, VisionError,
    },
};
use clap::ValueEnum;
use std::sync::Arc;

/// What changes a training image after a random crop and a flip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Changes {
    /// Brightness and contrast change a little
    Light,
    /// One change of any kind, weak or strong: TrivialAugment. Most of them need pixels, so workers decode
    Trivial,
    /// Nothing
    None,
}

/// Cuts out a random part at `side` x `side` pixels, mirrors half of the images, and makes the chosen changes.
pub(crate) fn training<T: HasImage + 'static>(side: u32, changes: Changes) -> Result<Arc<dyn Augment<T>>, Error> {
    let shape = (RandomResizedCrop::new(side)?.scale(0.6, 1.0)?, RandomHorizontalFlip::default());
    let light = ColorJitter::new().brightness(0.2)?.contrast(0.2)?;
    // The choices have different types. Behind `Arc<dyn ..>` they are one.
    let chosen: Arc<dyn Augment<T>> = match changes {
        Changes::Light => Arc::new((shape, light)),
        Changes::Trivial => Arc::new((shape, TrivialAugmentWide::default())),
        Changes::None => Arc::new(shape),
    };
    Ok(chosen)
}

/// Cuts out the centre square, and resizes it to this side. Nothing is random.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CentreSquare(pub(crate) u32);

impl CentreSquare {
    pub(crate) fn cut(self, image: &mut impl Picture) -> Result<(), VisionError> {
        let (width, height) = image.dimensions();
        let side = width.min(height);
        let (left, top) = (i64::from((width - side) / 2), i64::from((height - side) / 2));
        // The crop is before the resize: the other order makes a gigabyte out of an image of 1 x 16384 pixels.
        let square = CropBox { left, top, width: side, height: side };
        image.resized_crop(square, Size::from(self.0), Interpolation::Bilinear)
    }
}

impl<T: HasImage> Augment<T> for CentreSquare {
    fn apply(&self, mut sample: T, _: &mut KeyedRng) -> Result<T, BoxError> {
        self.cut(sample.image_mut())?;
        Ok(sample)
    }
}
