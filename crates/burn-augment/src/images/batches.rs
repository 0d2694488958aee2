//! Changes of whole batches on the device.
//!
//! ```
//! use burn::prelude::*;
//! use burn_augment::{BoxError, KeyedRng, images::{RandomCrop, device::{self, MixUp}}};
//!
//! const MEAN: [f32; 3] = [0.4914, 0.4822, 0.4465]; // of CIFAR-10
//! const STD: [f32; 3] = [0.2470, 0.2435, 0.2616];
//!
//! // Bytes [N, C, H, W] and labels [N]. One generator serves all changes of a batch.
//! fn change(
//!     images: Tensor<4, Int>, labels: Tensor<1, Int>, mixup: &MixUp, rng: &mut KeyedRng,
//! ) -> Result<(Tensor<4>, Tensor<2>), BoxError> {
//!     let images = device::random_crop(images, &RandomCrop::new(32)?.padding(4), rng)?;
//!     let images = device::random_horizontal_flip(images, 0.5, rng)?;
//!     let (images, targets) = mixup.apply(images, device::one_hot(labels, 10), rng);
//!     Ok((device::normalize(images, &MEAN, &STD)?, targets))
//! }
//! ```
//!
//! The images may be bytes or floats. Normalize them last: the other changes then move bytes, which take a quarter of
//! the memory of floats.
//!
//! Random numbers are drawn on the host, and are the same on every system. Nothing is read back from the device. With
//! burn-pinned, call these functions in `Collate::finish`, with the generator of `RawBatch::rng`.

mod mix;
mod parts;

pub use mix::{CutMix, MixUp, Patch};
pub use parts::{random_crop, random_erasing};

use crate::{augment::probability, error::Error, normalize, rng::KeyedRng};
use burn::{
    prelude::*,
    tensor::{Bool, kind::Basic},
};
use rand::RngExt;

/// The kind of pixels: [`Int`] for bytes from 0 to 255, or [`Float`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no kind of pixels",
    label = "images must be `Float` or `Int` tensors",
    note = "`batch.take::<4, Int>(..)` gives bytes, and `.float()` makes floats of them"
)]
pub trait Pixel: Basic + Sized {
    /// Returns the same values as floats.
    fn floats(images: Tensor<4, Self>) -> Tensor<4>;
}

impl Pixel for Int {
    fn floats(images: Tensor<4, Self>) -> Tensor<4> {
        images.float()
    }
}

impl Pixel for Float {
    fn floats(images: Tensor<4>) -> Tensor<4> {
        images
    }
}

/// Turns values `[N, C, H, W]` from 0 to 255 into `(x / 255 - mean) / std`, with one mean and deviation for each of the C channels, or one
/// for all. The values are bytes, or the floats that [`MixUp`] makes from bytes.
///
/// It is torchvision's `Normalize` after a scaling to 0..1.
///
/// # Errors
/// If there are not C means and deviations, nor one of each, or a deviation is not above 0.
pub fn normalize<K: Pixel>(images: Tensor<4, K>, mean: &[f32], std: &[f32]) -> Result<Tensor<4>, Error> {
    normalize::normalize("normalize", K::floats(images), (mean, std), 255.0)
}

/// Mirrors each image of `[N, C, H, W]` left to right with probability `p`, independently of the others. It draws for each
/// image what [`RandomHorizontalFlip`](super::RandomHorizontalFlip) draws.
///
/// # Errors
/// If `p` is not from 0 to 1.
pub fn random_horizontal_flip<K: Pixel>(
    images: Tensor<4, K>,
    p: f64,
    rng: &mut KeyedRng,
) -> Result<Tensor<4, K>, Error> {
    let p = probability("random_horizontal_flip", p)?;
    Ok(flip(images, 3, p, rng))
}

/// Mirrors each image of `[N, C, H, W]` top to bottom with probability `p`, independently of the others. It draws for each
/// image what [`RandomVerticalFlip`](super::RandomVerticalFlip) draws.
///
/// # Errors
/// If `p` is not from 0 to 1.
pub fn random_vertical_flip<K: Pixel>(images: Tensor<4, K>, p: f64, rng: &mut KeyedRng) -> Result<Tensor<4, K>, Error> {
    let p = probability("random_vertical_flip", p)?;
    Ok(flip(images, 2, p, rng))
}

fn flip<K: Pixel>(images: Tensor<4, K>, dim: usize, p: f64, rng: &mut KeyedRng) -> Tensor<4, K> {
    let count = images.dims()[0];
    let flips: Vec<bool> = (0..count).map(|_| rng.random_bool(p)).collect();
    if !flips.contains(&true) {
        return images;
    }
    let mask = Tensor::<4, Bool>::from_data(TensorData::new(flips, [count, 1, 1, 1]), &images.device());
    let mask = mask.expand(images.shape());
    let flipped = images.clone().flip([dim as isize]);
    images.mask_where(mask, flipped)
}

/// Turns labels `[N]` from 0 to `classes - 1` into rows `[N, classes]` of one 1 and zeros.
///
/// Burn's own `one_hot` checks the labels, and waits for the device. Here a label out of range becomes a row of zeros.
pub fn one_hot(labels: Tensor<1, Int>, classes: usize) -> Tensor<2> {
    let all = Tensor::<1, Int>::arange(0..classes as i64, (&labels.device(), labels.dtype()));
    let count = labels.dims()[0];
    labels.reshape([count, 1]).equal(all.reshape([1, classes])).float()
}
