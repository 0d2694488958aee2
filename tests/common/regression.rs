//! A training of one weight, for tests of Burn's learner.

use burn::{
    nn::{
        Linear,
        loss::{MseLoss, Reduction},
    },
    prelude::*,
    tensor::DType,
    train::{InferenceStep, RegressionOutput, TrainOutput, TrainStep},
};
use burn_pinned::{BoxError, Collate, Field, RawBatch, RowMut};

/// Batches of one column.
pub(super) struct Column;

impl Collate<f32> for Column {
    type Batch = Tensor<2>;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("x", DType::F32, [1])]
    }

    fn write(&self, x: &f32, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        Ok(row.write("x", &[*x])?)
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Tensor<2>, BoxError> {
        Ok(batch.take("x")?)
    }
}

/// Learns to double a number.
#[derive(Module, Debug)]
pub(super) struct Model {
    pub(super) linear: Linear,
}

impl Model {
    fn output(&self, x: Tensor<2>) -> RegressionOutput {
        let (output, targets) = (self.linear.forward(x.clone()), x * 2.0);
        let loss = MseLoss::new().forward(output.clone(), targets.clone(), Reduction::Mean);
        RegressionOutput::new(loss, output, targets)
    }
}

impl TrainStep for Model {
    type Input = Tensor<2>;
    type Output = RegressionOutput;

    fn step(&self, x: Tensor<2>) -> TrainOutput<RegressionOutput> {
        let output = self.output(x);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for Model {
    type Input = Tensor<2>;
    type Output = RegressionOutput;

    fn step(&self, x: Tensor<2>) -> RegressionOutput {
        self.output(x)
    }
}
