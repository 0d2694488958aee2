//! What is made of a batch when its bytes are on the device.

use burn::tensor::{DType, Float, Int, Tensor};
use burn_pinned::{
    BoxError, KeyedRng,
    vision::device::{CutMix, MixUp, one_hot},
};
use rand::RngExt;

/// What is made of the bytes on the device.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Finish {
    Raw,
    Scaled(DType),
    Mixed,
}

pub(crate) type Batch = (Raw, Tensor<1, Int>);

/// The values on the device, in the dtype in which they crossed the link.
#[derive(Clone, Debug)]
pub(crate) enum Raw {
    Bytes(Tensor<4, Int>),
    Floats(Tensor<4, Float>),
}

impl Finish {
    pub(crate) fn run(self, x: Raw, labels: Tensor<1, Int>, rng: &mut KeyedRng) -> Result<Batch, BoxError> {
        let x = match x {
            Raw::Bytes(x) if self != Self::Raw => x,
            x => return Ok((x, labels)),
        };
        let scaled = |x: Tensor<4>| Raw::Floats((x / 255.0 - 0.5) / 0.25);
        if let Self::Scaled(dtype) = self {
            return Ok((scaled(x.float().cast(dtype)), labels));
        }
        let (rows, targets) = (labels.dims()[0], one_hot(labels, 10));
        let (x, targets) = match rng.random_bool(0.5) {
            true => MixUp::new(0.2)?.apply(x, targets, rng),
            false => {
                let (x, targets) = CutMix::new(1.0)?.apply(x, targets, rng);
                (x.float(), targets)
            }
        };
        Ok((scaled(x), targets.argmax(1).reshape([rows])))
    }
}
