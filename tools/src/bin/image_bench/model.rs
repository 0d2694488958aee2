//! A small convolutional network: three blocks of convolution, normalisation and pooling, then one linear layer.

use super::{collate::ImageBatch, norm::ReplicaNorm};
use burn::{
    nn::{
        BatchNormConfig, Linear, LinearConfig, PaddingConfig2d, Relu,
        conv::{Conv2d, Conv2dConfig},
        loss::CrossEntropyLossConfig,
        pool::{AdaptiveAvgPool2d, AdaptiveAvgPool2dConfig, MaxPool2d, MaxPool2dConfig},
    },
    prelude::*,
    train::{ClassificationOutput, InferenceStep, TrainOutput, TrainStep},
};

#[derive(Module, Debug)]
pub(crate) struct Block {
    conv: Conv2d,
    norm: ReplicaNorm,
    relu: Relu,
    pool: MaxPool2d,
}

impl Block {
    fn new(input: usize, output: usize, own_averages: bool, device: &Device) -> Self {
        Self {
            conv: Conv2dConfig::new([input, output], [3, 3])
                .with_padding(PaddingConfig2d::Same)
                .with_bias(false)
                .init(device),
            norm: ReplicaNorm::new(BatchNormConfig::new(output).init(device), own_averages),
            relu: Relu::new(),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        self.pool.forward(self.relu.forward(self.norm.forward(self.conv.forward(x))))
    }
}

#[derive(Module, Debug)]
pub(crate) struct Model {
    blocks: Vec<Block>,
    pool: AdaptiveAvgPool2d,
    head: Linear,
}

impl Model {
    /// A model whose replicas have `own_averages` in their normalisation, or share them.
    pub(crate) fn new(classes: usize, own_averages: bool, device: &Device) -> Self {
        let widths = [3, 16, 32, 64];
        Self {
            blocks: widths.windows(2).map(|width| Block::new(width[0], width[1], own_averages, device)).collect(),
            pool: AdaptiveAvgPool2dConfig::new([2, 2]).init(),
            head: LinearConfig::new(64 * 4, classes).init(device),
        }
    }

    /// Logits `[batch, classes]` of images `[batch, 3, side, side]`.
    pub(crate) fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = self.blocks.iter().fold(images, |x, block| block.forward(x));
        self.head.forward(self.pool.forward(x).flatten(1, 3))
    }

    fn classify(&self, batch: ImageBatch) -> ClassificationOutput {
        let output = self.forward(batch.images);
        let loss = CrossEntropyLossConfig::new().init(&output.device()).forward(output.clone(), batch.labels.clone());
        ClassificationOutput { loss, output, targets: batch.labels }
    }
}

impl TrainStep for Model {
    type Input = ImageBatch;
    type Output = ClassificationOutput;

    fn step(&self, batch: ImageBatch) -> TrainOutput<ClassificationOutput> {
        let item = self.classify(batch);
        TrainOutput::new(self, item.loss.backward(), item)
    }
}

impl InferenceStep for Model {
    type Input = ImageBatch;
    type Output = ClassificationOutput;

    fn step(&self, batch: ImageBatch) -> ClassificationOutput {
        self.classify(batch)
    }
}
