//! A custom training loop, without Burn's learner: a small network separates two spirals.
//!
//!     cargo run --release --example custom_loop

use burn::data::dataset::InMemDataset;
use burn::nn::{Linear, LinearConfig, loss::CrossEntropyLossConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::{prelude::*, tensor::DType, tensor::activation::relu};
use burn_pinned::{BoxError, Collate, Field, KeyedRng, PinnedDataLoaderBuilder, RawBatch, RowMut};
use rand::RngExt;

type Point = ([f32; 2], i32);
struct Points;

impl Collate<Point> for Points {
    type Batch = (Tensor<2>, Tensor<1, Int>);

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("xy", DType::F32, [2]), Field::new("arm", DType::I32, [])]
    }
    fn write(&self, (xy, arm): &Point, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        row.write("xy", xy)?;
        Ok(row.put("arm", *arm)?)
    }
    fn finish(&self, mut batch: RawBatch) -> Result<Self::Batch, BoxError> {
        Ok((batch.take("xy")?, batch.take_int("arm")?))
    }
}

#[derive(Module, Debug)]
struct Net {
    layers: Vec<Linear>,
}

impl Net {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let (last, inner) = self.layers.split_last().expect("three layers");
        last.forward(inner.iter().fold(x, |x, layer| relu(layer.forward(x))))
    }
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let spiral = |n: usize| {
        let (turn, arm) = ((n / 2) as f32 / 500.0 * 6.0, (n % 2) as i32);
        let angle = turn + arm as f32 * std::f32::consts::PI;
        ([turn * angle.cos() / 6.0, turn * angle.sin() / 6.0], arm)
    };
    let blur = |([x, y], arm): Point, rng: &mut KeyedRng| {
        Ok(([x + rng.random_range(-0.03..0.03f32), y + rng.random_range(-0.03..0.03f32)], arm))
    };
    let device = Device::default().autodiff();
    let loader = PinnedDataLoaderBuilder::new(Points)
        .batch_size(50)
        .shuffle(7)
        .augment(blur)
        .set_device(device.clone())
        .build(InMemDataset::new((0..1000).map(spiral).collect()))?;

    let layer = |width: &[usize]| LinearConfig::new(width[0], width[1]).init(&device);
    let mut net = Net { layers: [2, 64, 64, 2].windows(2).map(layer).collect() };
    let mut optim = AdamConfig::new().init();
    for epoch in 1..=30 {
        let (mut right, mut seen) = (0.0, 0);
        for batch in loader.iter() {
            let (xy, arm) = batch?;
            let logits = net.forward(xy);
            let loss = CrossEntropyLossConfig::new().init(&device).forward(logits.clone(), arm.clone());
            seen += arm.dims()[0];
            right += logits.argmax(1).flatten::<1>(0, 1).equal(arm).int().sum().into_scalar::<f64>();
            let grads = GradientsParams::from_grads(loss.backward(), &net);
            net = optim.step(3e-3, net, grads);
        }
        if epoch % 5 == 0 {
            println!("epoch {epoch:>2}: {:.1} % right", 100.0 * right / seen as f64);
        }
    }
    println!("\n{}", loader.stats());
    Ok(())
}
