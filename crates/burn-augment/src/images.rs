//! Images: decoding, torchvision's transforms, and changes of whole batches on the device.
//!
//! ```
//! use burn_augment::{Augment, KeyedRng, images::*};
//! use image::RgbImage;
//!
//! let train = (
//!     RandomResizedCrop::new(224)?,
//!     RandomHorizontalFlip::new(0.5)?,
//!     ColorJitter::new().brightness(0.4)?.contrast(0.4)?.saturation(0.4)?,
//!     RandomErasing::new(0.25)?,
//! );
//! let sample = (RgbImage::new(500, 375), 3usize); // an image and its label
//! let (image, label) = train.apply(sample, &mut KeyedRng::for_order(1, 0))?;
//! assert_eq!((image.dimensions(), label), ((224, 224), 3));
//! # Ok::<(), burn_augment::BoxError>(())
//! ```
//!
//! Names, parameters, defaults and distributions are those of torchvision's `transforms.v2`
//! (<https://docs.pytorch.org/vision/stable/transforms.html>). Each item says where it differs. Transforms change an
//! [`Image`], an `RgbImage` of the crate [`image`], and any sample that [has one](HasImage). A wrong parameter is an
//! error of the method that takes it.
//!
//! The same pixels and the same seed give the same bytes on every CPU: arithmetic uses integers, or floats whose
//! results are the same everywhere. Decoders, and so [`JPEG`], do not promise this.
//!
//! - Files: [`ImageFolder`] and [`Coco`], data sets; [`Image`], decoded late; [`open`] and [`decode`], which decode at once;
//!   [`Limits`].
//! - Geometry: [`RandomResizedCrop`], [`RandomCrop`], [`RandomIoUCrop`], [`CenterCrop`], [`Resize`], [`Pad`],
//!   [`RandomResize`], [`LetterBox`], [`RandomZoomOut`], [`BBoxSafeRandomCrop`],
//!   [`RandomHorizontalFlip`], [`RandomVerticalFlip`], [`RandomRotate90`], [`D4`], [`RandomRotation`],
//!   [`RandomAffine`], [`RandomPerspective`], [`ElasticTransform`].
//! - Colour: [`ColorJitter`], [`Grayscale`], [`RandomGrayscale`], [`GaussianBlur`], [`RandomAdjustSharpness`],
//!   [`RandomAutocontrast`], [`RandomEqualize`], [`RandomInvert`], [`RandomPosterize`], [`RandomSolarize`],
//!   [`RandomPhotometricDistort`], [`RandomGamma`], [`CLAHE`], [`GaussianNoise`], [`JPEG`], [`RandomChannelPermutation`].
//! - [`RandomErasing`], [`RandAugment`], [`TrivialAugmentWide`], [`AutoAugment`], [`AugMix`].
//! - Parts that move with an image: [`Mask`], [`Boxes`], [`Points`], a second image; [`HasImage`] says which parts a
//!   sample has. [`AveragePrecision`] measures found boxes.
//! - Combinations: a tuple, [`RandomApply`](crate::augment::RandomApply), [`OneOf`](crate::augment::OneOf), which is
//!   torchvision's `RandomChoice`, [`RandomOrder`](crate::augment::RandomOrder), [`Views`](crate::augment::Views).
//! - Several samples in one, with [`WithOthers`](crate::augment::WithOthers): [`Mosaic`], [`MixUpBoxes`], [`CopyPaste`].
//! - Batches: [`write_chw`] writes an image into a row; [`device`] changes whole batches.

#[cfg(feature = "annotations")]
mod annotations;
mod aug_mix;
mod auto_augment;
mod average_precision;
#[doc(hidden)]
pub mod batches;
mod coco;
mod colour;
mod decode;
mod elastic;
mod erase;
mod error;
mod geometry;
mod iou_crop;
mod lazy;
mod parameters;
mod parts;
mod picture;
mod rand_augment;
mod safe_crop;
mod sample;
mod together;
mod transform;
mod trivial_augment;

pub use crate::size::Size;
#[cfg(feature = "annotations")]
pub use annotations::{Annotated, FromAnnotation};
pub use aug_mix::AugMix;
pub use auto_augment::{AutoAugment, AutoAugmentPolicy};
pub use average_precision::AveragePrecision;
#[doc(inline)]
pub use batches as device;
pub use coco::{Coco, CocoClass, CocoError, CocoObject, CocoSample};
#[doc(hidden)]
pub use colour::light;
pub use colour::{
    Adjust, CLAHE, ColorJitter, GaussianBlur, GaussianNoise, Grayscale, JPEG, RandomAdjustSharpness,
    RandomAutocontrast, RandomChannelPermutation, RandomEqualize, RandomGamma, RandomGrayscale, RandomInvert,
    RandomPhotometricDistort, RandomPosterize, RandomSolarize,
};
pub use decode::{Limits, decode, open, write_chw};
pub use elastic::ElasticTransform;
pub use erase::{Erased, RandomErasing};
pub use error::VisionError;
#[doc(hidden)]
pub use geometry::Walk;
pub use geometry::{
    Affine, CenterCrop, CropBox, D4, Interpolation, LetterBox, Pad, PaddingMode, RandomAffine, RandomCrop,
    RandomHorizontalFlip, RandomPerspective, RandomResize, RandomResizedCrop, RandomRotate90, RandomRotation,
    RandomVerticalFlip, RandomZoomOut, Resize,
};
pub use iou_crop::RandomIoUCrop;
#[doc(hidden)]
pub use lazy::{DecodePlan, RowScope};
pub use lazy::{FolderError, Image, ImageFolder};
pub use parameters::Spread;
pub use parts::{AllParts, BoxFormat, Boxes, Mask, Part, Points};
pub use picture::Picture;
pub use rand_augment::{RandAugment, RandAugmentOp};
pub use safe_crop::BBoxSafeRandomCrop;
pub use sample::HasImage;
pub use together::{CopyPaste, MixUpBoxes, Mosaic};
pub use trivial_augment::TrivialAugmentWide;
