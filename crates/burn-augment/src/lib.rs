//! Random changes of samples for [Burn](burn): decoding of image files, torchvision's transforms, and masks, boxes and
//! points that move with their image.
//!
//! ```
//! use burn_augment::{Augment, KeyedRng, augment::RandomApply};
//! use rand::RngExt;
//!
//! let noise = |x: f32, rng: &mut KeyedRng| Ok(x + rng.random_range(-0.1..0.1));
//! let negate = |x: f32, _: &mut KeyedRng| Ok(-x);
//! let train = (noise, RandomApply::new(0.5, negate)?); // one after the other
//! let changed = train.apply(3.0, &mut KeyedRng::for_sample(42, 0, 7))?; // seed, epoch, index of the sample
//! assert!((2.9..3.1).contains(&changed.abs()));
//! # Ok::<(), burn_augment::BoxError>(())
//! ```
//!
//! It works with Burn's own `DataLoader`: call an augmentation in the `get` of a data set, as in the quick start of the
//! README. The loader `burn-pinned` calls it on its workers, with a generator that depends only on the seed, the epoch
//! and the sample.
//!
//! # Features
//!
//! - `images`: the module `images`: decoding of image files, torchvision's transforms, and changes of whole batches on
//!   the device.
//! - `annotations`: Burn's own data sets of images with labels, masks or boxes, as samples of the module `images`.
//! - `turbo`: JPEGs are decoded by libjpeg-turbo, which is built from source with CMake and NASM.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod augment;
mod error;
#[cfg(feature = "images")]
mod files;
#[cfg(feature = "images")]
pub mod images;
mod normalize;
mod rng;
mod size;
mod warn;

pub use augment::Augment;
pub use error::{BoxError, Error};
#[cfg(feature = "images")]
pub use image;
pub use rand;
pub use rng::KeyedRng;
pub use size::Size;

/// What burn-pinned and burn-shards need in addition. Any version may change it.
#[doc(hidden)]
pub mod for_loader {
    #[cfg(feature = "images")]
    pub use crate::{
        files::close_by,
        images::{DecodePlan, RowScope, Walk, light},
    };
    pub use crate::{normalize::normalize, rng::Purpose, warn::warn};
}

/// The examples of the README, compiled and run as tests.
#[cfg(all(doctest, feature = "images"))]
#[doc = include_str!("../README.md")]
mod readme {}
