//! Images: decoding, the usual random changes, and mixing of batches on the device. They are the module [`images`](burn_augment::images)
//! of the crate `burn-augment`, which works with Burn's own loader too.
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
//! [`RowMut::image`](crate::RowMut::image) and [`RowMut::mask`](crate::RowMut::mask) write an [`Image`] and a [`Mask`] into a row;
//! [`Field::image`](crate::Field::image) may leave the decoding to the device. [`device`] is for
//! [`Collate::finish`](crate::Collate::finish), with the generator of [`RawBatch::rng`](crate::RawBatch::rng).

use crate::fault::FieldError;
#[doc(inline)]
pub use burn_augment::images::*;
#[cfg(feature = "derive")]
pub use burn_pinned_derive::HasImage;

impl From<FieldError> for VisionError {
    fn from(error: FieldError) -> Self {
        Self::Field(Box::new(error))
    }
}
