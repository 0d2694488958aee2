//! Images: decoding, augmentation, and mixing of batches on the device. This is the module [`images`](burn_augment::images) of the crate
//! `burn-augment`, which also works with Burn's own loader.
//!
//! ```
//! use burn_pinned::{Augment, KeyedRng, vision::*};
//! use image::RgbImage;
//!
//! let train = (RandomResizedCrop::new(224)?, RandomHorizontalFlip::default());
//! let sample = (RgbImage::new(500, 375), 3usize); // an image and its label
//! let (image, label) = train.apply(sample, &mut KeyedRng::for_order(1, 0))?;
//! assert_eq!((image.dimensions(), label), ((224, 224), 3));
//! # Ok::<(), burn_pinned::BoxError>(())
//! ```
//!
//! [`RowMut::image`](crate::RowMut::image) writes an [`Image`] into a row, and [`RowMut::mask`](crate::RowMut::mask) writes a [`Mask`].
//! With [`Field::image`](crate::Field::image) the device can decode images. Use the module [`device`] in
//! [`Collate::finish`](crate::Collate::finish), with the generator of [`RawBatch::rng`](crate::RawBatch::rng).

use crate::fault::FieldError;
pub use burn_augment::Error as ParameterError;
#[doc(inline)]
pub use burn_augment::images::*;
#[cfg(feature = "derive")]
pub use burn_pinned_derive::HasImage;

impl From<FieldError> for VisionError {
    fn from(error: FieldError) -> Self {
        Self::Field(Box::new(error))
    }
}
