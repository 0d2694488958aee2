//! Mixing each image of a batch with its neighbour.

use super::Pixel;
use crate::{
    error::Error,
    images::parameters::{beta, positive},
    rng::KeyedRng,
};
use burn::{
    prelude::*,
    tensor::{DType, TensorData, s},
};
use rand::RngExt;

/// Mixes each image of a batch with its neighbour. The whole batch uses one share, drawn from Beta(alpha, alpha).
///
/// The method is that of Zhang et al., "mixup: Beyond Empirical Risk Minimization", 2017. It works as torchvision's
/// `MixUp`.
#[derive(Debug, Clone, Copy)]
pub struct MixUp(f64);

impl MixUp {
    /// Sets the `alpha` of the distribution: with 0.2 most batches are mixed little, and 1 is uniform.
    ///
    /// # Errors
    /// If `alpha` is not above 0.
    pub fn new(alpha: f64) -> Result<Self, Error> {
        Ok(Self(positive("MixUp::new", alpha)?))
    }

    /// Draws the share of the image itself in the mix, from 0 to 1.
    pub fn draw(&self, rng: &mut KeyedRng) -> f64 {
        beta(self.0, rng)
    }

    /// Mixes images `[N, C, H, W]` and targets `[N, classes]`, such as [`one_hot`](super::one_hot) makes, by the same share.
    /// Bytes become floats from 0 to 255.
    pub fn apply<K: Pixel>(
        &self,
        images: Tensor<4, K>,
        targets: Tensor<2>,
        rng: &mut KeyedRng,
    ) -> (Tensor<4>, Tensor<2>) {
        let share = self.draw(rng);
        let others = images.clone().roll_dim(1, 0);
        (mix(K::floats(images), K::floats(others), share), mix_targets(targets, share))
    }
}

/// Puts a rectangle of its neighbour into each image: the same rectangle in the whole batch. Targets are mixed by area.
///
/// The method is that of Yun et al., "CutMix: Regularization Strategy to Train Strong Classifiers with Localizable
/// Features", 2019. It works as torchvision's `CutMix`.
#[derive(Debug, Clone, Copy)]
pub struct CutMix(f64);

/// The rectangle that an image gets from its neighbour, in pixels. The ends are exclusive. It may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Columns.
    pub x: std::ops::Range<usize>,
    /// Rows.
    pub y: std::ops::Range<usize>,
}

impl CutMix {
    /// Sets the `alpha` of Beta(alpha, alpha), from which the share of the remaining area is drawn: 1 is uniform.
    ///
    /// # Errors
    /// If `alpha` is not above 0.
    pub fn new(alpha: f64) -> Result<Self, Error> {
        Ok(Self(positive("CutMix::new", alpha)?))
    }

    /// Draws the rectangle for images of `width` x `height`.
    ///
    /// The centre of the rectangle is uniform. Its sides are those of the images times `sqrt(1 - share)`. It is clipped
    /// at the border.
    pub fn draw(&self, width: usize, height: usize, rng: &mut KeyedRng) -> Patch {
        let half = 0.5 * (1.0 - beta(self.0, rng)).sqrt();
        let mut side = |length: usize| {
            let middle = rng.random_range(0..length.max(1));
            let half = (half * length as f64) as usize;
            middle.saturating_sub(half)..(middle + half).min(length)
        };
        Patch { x: side(width), y: side(height) }
    }

    /// Changes images `[N, C, H, W]` and targets `[N, classes]`, such as [`one_hot`](super::one_hot) makes.
    pub fn apply<K: Pixel>(
        &self,
        images: Tensor<4, K>,
        targets: Tensor<2>,
        rng: &mut KeyedRng,
    ) -> (Tensor<4, K>, Tensor<2>) {
        let [count, _, height, width] = images.dims();
        let Patch { x, y } = self.draw(width, height, rng);
        if count < 2 || x.is_empty() || y.is_empty() {
            return (images, targets);
        }
        let share = 1.0 - (x.len() * y.len()) as f64 / (width * height) as f64;
        // The neighbours are taken in two pieces: `roll_dim` would first join the pieces, and so copy both once more.
        let part = |of| images.clone().slice(s![of, .., y.clone(), x.clone()]);
        let (last, others) = (part(count - 1..count), part(0..count - 1));
        let images = images.slice_assign(s![0..1, .., y.clone(), x.clone()], last);
        (images.slice_assign(s![1.., .., y, x], others), mix_targets(targets, share))
    }
}

fn mix<const D: usize>(batch: Tensor<D>, others: Tensor<D>, share: f64) -> Tensor<D> {
    others.mul_scalar(1.0 - share) + batch.mul_scalar(share)
}

/// Mixes each row with the row before it, and the first row with the last. Targets have few bytes, so the one kernel of
/// a selection is faster than the four kernels of `roll_dim`.
fn mix_targets(targets: Tensor<2>, share: f64) -> Tensor<2> {
    let count = targets.dims()[0] as i32;
    let before: Vec<i32> = (0..count).map(|at| (at + count - 1) % count).collect();
    let before = Tensor::from_data(TensorData::new(before, [count as usize]), (&targets.device(), DType::I32));
    let others = targets.clone().select(0, before);
    mix(targets, others, share)
}
