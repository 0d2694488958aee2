//! The centre square, for validation images.

use burn_pinned::{
    Augment, BoxError, KeyedRng,
    vision::{CropBox, HasImage, Interpolation, Picture, Size, VisionError},
};

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
