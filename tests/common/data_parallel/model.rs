//! A network of three layers, the middle one of which may be used several times.

use super::lines::{Batch, CLASSES, SIDE};
use burn::{
    nn::{Linear, LinearConfig, loss::CrossEntropyLossConfig},
    optim::GradientsParams,
    prelude::*,
    tensor::activation::relu,
};
use burn_pinned::BoxError;

#[derive(Module, Debug)]
pub(crate) struct Model {
    first: Linear,
    second: Linear,
    last: Linear,
    passes: usize,
}

impl Model {
    pub(crate) fn new(width: usize, passes: usize, device: &Device) -> Self {
        let layer = |input, output| LinearConfig::new(input, output).init(device);
        Self { first: layer(SIDE * SIDE, width), second: layer(width, width), last: layer(width, CLASSES), passes }
    }

    /// Logits `[batch, CLASSES]`.
    pub(crate) fn forward(&self, pixels: Tensor<2>) -> Tensor<2> {
        let first = relu(self.first.forward(pixels));
        self.last.forward((0..self.passes).fold(first, |x, _| relu(self.second.forward(x))))
    }

    /// The loss of a batch and its gradients.
    pub(crate) fn step(&self, batch: Batch) -> Result<(Tensor<1>, GradientsParams), BoxError> {
        let logits = self.forward(batch.pixels);
        let loss = CrossEntropyLossConfig::new().init(&logits.device()).forward(logits, batch.classes);
        Ok((loss.clone(), GradientsParams::from_grads(loss.backward(), self)))
    }
}
