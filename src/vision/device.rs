//! Changes of whole batches on the device, for [`Collate::finish`](crate::Collate::finish).
//!
//! ```
//! use burn::prelude::*;
//! use burn_pinned::{BoxError, RawBatch, vision::device::{self, MixUp}};
//!
//! const MEAN: [f32; 3] = [0.485, 0.456, 0.406]; // of ImageNet
//! const STD: [f32; 3] = [0.229, 0.224, 0.225];
//!
//! fn finish(mut batch: RawBatch, mixup: &MixUp) -> Result<(Tensor<4>, Tensor<2>), BoxError> {
//!     let mut rng = batch.rng(); // one for all changes of this batch
//!     let images = device::normalize(batch.take("image")?, &MEAN, &STD)?;
//!     let images = device::random_horizontal_flip(images, 0.5, &mut rng)?;
//!     let targets = device::one_hot(batch.take_int("label")?, 1000);
//!     Ok(mixup.apply(images, targets, &mut rng))
//! }
//! ```
//!
//! Randomness is drawn on the host, from [`RawBatch::rng`](crate::RawBatch::rng); nothing is read back from the device.
//! Shares of Beta distributions are computed with the system's logarithm and may differ in the last bit between systems.

use crate::{augment::probability, fault::Error, rng::KeyedRng};
use burn::{
    prelude::*,
    tensor::{Bool, TensorData, s},
};
use rand::RngExt;
use rand_distr::{Beta, Distribution};

/// Bytes `[N, C, H, W]`, 0 to 255, to numbers: `(x / 255 - mean) / std` for each of the C channels, torchvision's `Normalize` after
/// a scaling to 0..1.
///
/// # Errors
/// If there are not C means and deviations, or a deviation is not above 0.
pub fn normalize(images: Tensor<4, Int>, mean: &[f32], std: &[f32]) -> Result<Tensor<4>, Error> {
    let channels = images.dims()[1];
    if mean.len() != channels || std.len() != channels {
        let problem = format!("{} means and {} deviations for {channels} channels", mean.len(), std.len());
        return Err(Error::config("normalize", problem, "give one of each for a channel"));
    }
    if let Some(std) = std.iter().find(|std| !(**std > 0.0 && std.is_finite())) {
        return Err(Error::config("normalize", format!("{std} is not a standard deviation"), "give numbers above 0"));
    }
    let device = images.device();
    let each = |values: Vec<f32>| Tensor::<4>::from_data(TensorData::new(values, [1, channels, 1, 1]), &device);
    let scale = each(std.iter().map(|std| 1.0 / (255.0 * std)).collect());
    let shift = each(mean.iter().zip(std).map(|(mean, std)| mean / std).collect());
    Ok(images.float() * scale - shift)
}

/// Mirrors each of `[N, C, H, W]` left to right with probability `p`, each by itself. Takes floats, so that what was copied from
/// the host is read once, by the conversion.
///
/// # Errors
/// If `p` is not from 0 to 1.
pub fn random_horizontal_flip(images: Tensor<4>, p: f64, rng: &mut KeyedRng) -> Result<Tensor<4>, Error> {
    let p = probability("random_horizontal_flip", p)?;
    let count = images.dims()[0];
    let flips: Vec<bool> = (0..count).map(|_| rng.random_bool(p)).collect();
    if !flips.contains(&true) {
        return Ok(images);
    }
    let mask = Tensor::<4, Bool>::from_data(TensorData::new(flips, [count, 1, 1, 1]), &images.device());
    let mask = mask.expand(images.shape());
    let flipped = images.clone().flip([3]);
    Ok(images.mask_where(mask, flipped))
}

/// Labels `[N]` from 0 to `classes - 1` as rows `[N, classes]` of a 1 and zeros. Burn's own `one_hot` checks the labels, for
/// which it waits for the device; here a label out of range is a row of zeros.
pub fn one_hot(labels: Tensor<1, Int>, classes: usize) -> Tensor<2> {
    let all = Tensor::<1, Int>::arange(0..classes as i64, &labels.device()).cast(labels.dtype());
    let count = labels.dims()[0];
    labels
        .reshape([count, 1])
        .expand([count, classes])
        .equal(all.reshape([1, classes]).expand([count, classes]))
        .float()
}

/// Mixes each image of a batch with its neighbour: one share for all of the batch, drawn from Beta(alpha, alpha).
///
/// Zhang et al., "mixup: Beyond Empirical Risk Minimization", 2017; as torchvision's `MixUp`.
#[derive(Debug, Clone, Copy)]
pub struct MixUp(Beta<f64>);

impl MixUp {
    /// `alpha` of the distribution: 0.2 mixes most batches little, 1 is uniform.
    ///
    /// # Errors
    /// If it is not above 0.
    pub fn new(alpha: f64) -> Result<Self, Error> {
        Ok(Self(beta("MixUp::new", alpha)?))
    }

    /// The share of an image itself, from 0 to 1.
    pub fn draw(&self, rng: &mut KeyedRng) -> f64 {
        self.0.sample(rng)
    }

    /// Images `[N, C, H, W]` and targets `[N, classes]`, such as [`one_hot`] makes, both mixed by the same share.
    pub fn apply(&self, images: Tensor<4>, targets: Tensor<2>, rng: &mut KeyedRng) -> (Tensor<4>, Tensor<2>) {
        let share = self.draw(rng);
        (mix(images, share), mix(targets, share))
    }
}

/// Puts a rectangle of each image's neighbour into it, the same for all of the batch; the target is mixed by area.
///
/// Yun et al., "CutMix: Regularization Strategy to Train Strong Classifiers with Localizable Features", 2019; as torchvision's
/// `CutMix`.
#[derive(Debug, Clone, Copy)]
pub struct CutMix(Beta<f64>);

/// The rectangle that an image gets from its neighbour, in pixels; ends are not part of it. It may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Columns.
    pub x: std::ops::Range<usize>,
    /// Rows.
    pub y: std::ops::Range<usize>,
}

impl CutMix {
    /// `alpha` of the distribution Beta(alpha, alpha) of the area that stays: 1 is uniform.
    ///
    /// # Errors
    /// If it is not above 0.
    pub fn new(alpha: f64) -> Result<Self, Error> {
        Ok(Self(beta("CutMix::new", alpha)?))
    }

    /// The rectangle for images of `width` x `height`: its middle is uniform, its sides are the images' times `sqrt(1 - share)`,
    /// and what lies outside is cut off.
    pub fn draw(&self, width: usize, height: usize, rng: &mut KeyedRng) -> Patch {
        let half = 0.5 * (1.0 - self.0.sample(rng)).sqrt();
        let mut side = |length: usize| {
            let middle = rng.random_range(0..length.max(1));
            let half = (half * length as f64) as usize;
            middle.saturating_sub(half)..(middle + half).min(length)
        };
        Patch { x: side(width), y: side(height) }
    }

    /// Images `[N, C, H, W]` and targets `[N, classes]`, such as [`one_hot`] makes.
    pub fn apply(&self, images: Tensor<4>, targets: Tensor<2>, rng: &mut KeyedRng) -> (Tensor<4>, Tensor<2>) {
        let [_, _, height, width] = images.dims();
        let Patch { x, y } = self.draw(width, height, rng);
        if x.is_empty() || y.is_empty() {
            return (images, targets);
        }
        let share = 1.0 - (x.len() * y.len()) as f64 / (width * height) as f64;
        let patch = neighbours(images.clone().slice(s![.., .., y.clone(), x.clone()]));
        (images.slice_assign(s![.., .., y, x], patch), mix(targets, share))
    }
}

fn beta(option: &'static str, alpha: f64) -> Result<Beta<f64>, Error> {
    let error = || Error::config(option, format!("alpha is {alpha}"), "give a number above 0, such as 1.0");
    if alpha.is_finite() { Beta::new(alpha, alpha).map_err(|_| error()) } else { Err(error()) }
}

/// For each of the batch the one before it, for the first the last.
fn neighbours<const D: usize>(batch: Tensor<D>) -> Tensor<D> {
    batch.roll_dim(1, 0)
}

fn mix<const D: usize>(batch: Tensor<D>, share: f64) -> Tensor<D> {
    neighbours(batch.clone()).mul_scalar(1.0 - share) + batch.mul_scalar(share)
}
