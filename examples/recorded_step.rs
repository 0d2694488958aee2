//! A step that is recorded once, as a CUDA graph, and runs on every batch.
//!
//!     cargo run --release --features cuda --example recorded_step
//!
//! It runs a small network of many short operations over all batches in two ways: operation by operation, and as one
//! recording. On a backend that records nothing, as a CPU's, the second way runs the operations again.

use burn::{
    data::{dataset::Dataset, dataset::DatasetError},
    prelude::*,
    tensor::{DType, Distribution, activation::relu, capture},
};
use burn_pinned::{
    BoxError, Collate, Error, Field, FixedBatch, PinnedDataLoader, PinnedDataLoaderBuilder, RawBatch, RowMut,
};
use clap::Parser;
use std::{sync::Arc, time::Instant};

const FEATURES: usize = 256;
const LAYERS: usize = 24;
const BATCH: usize = 32;

/// Compares a step that is launched operation by operation with one that is recorded.
#[derive(Parser)]
struct Args {
    /// Batches of each round
    #[arg(long, default_value_t = 400)]
    batches: usize,
}

/// Indices, of which the rows are made.
struct Rows(usize);

impl Dataset<usize> for Rows {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        Ok(index)
    }

    fn len(&self) -> usize {
        BATCH * self.0
    }
}

struct Waves;

impl Collate<usize> for Waves {
    type Batch = Tensor<2>;

    fn layout(&self) -> Vec<Field> {
        vec![Field::new("wave", DType::F32, [FEATURES])]
    }

    fn write(&self, &index: &usize, row: &mut RowMut<'_>) -> Result<(), BoxError> {
        let step = (index % 97) as f32 * 0.01;
        for (at, value) in row.slice_mut::<f32>("wave")?.iter_mut().enumerate() {
            *value = (at as f32 * step).sin();
        }
        Ok(())
    }

    fn finish(&self, mut batch: RawBatch) -> Result<Tensor<2>, BoxError> {
        Ok(batch.take("wave")?)
    }
}

/// A network without gradients: `LAYERS` times a product, a sum and a ReLU.
struct Network {
    weights: Vec<Tensor<2>>,
    biases: Vec<Tensor<2>>,
}

impl Network {
    fn new(device: &Device) -> Self {
        let spread = Distribution::Normal(0.0, (2.0 / FEATURES as f64).sqrt());
        let weight = |_| Tensor::random([FEATURES, FEATURES], spread, device);
        let bias = |_| Tensor::random([1, FEATURES], Distribution::Normal(0.0, 0.01), device);
        Self { weights: (0..LAYERS).map(weight).collect(), biases: (0..LAYERS).map(bias).collect() }
    }

    /// The mean of what comes out.
    fn run(&self, batch: Tensor<2>) -> Tensor<1> {
        let layers = self.weights.iter().zip(&self.biases);
        layers.fold(batch, |x, (weight, bias)| relu(x.matmul(weight.clone()) + bias.clone())).mean()
    }
}

/// Runs an epoch. Returns the seconds that it took, and the sum of the outputs.
fn epoch(
    loader: &PinnedDataLoader<Tensor<2>>,
    device: &Device,
    mut step: impl FnMut(Tensor<2>) -> Result<Tensor<1>, Error>,
) -> Result<(f64, f32), BoxError> {
    let (start, mut sum) = (Instant::now(), Tensor::<1>::zeros([1], device));
    for batch in loader.iter() {
        sum = sum + step(batch?)?;
    }
    let sum = sum.into_scalar::<f32>();
    Ok((start.elapsed().as_secs_f64(), sum))
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let Args { batches } = Args::parse();
    let device = Device::default();
    let builder = PinnedDataLoaderBuilder::new(Waves).batch_size(BATCH).drop_last(true).set_device(device.clone());
    let loader: Arc<PinnedDataLoader<Tensor<2>>> = builder.build(Rows(batches))?;
    let network = Network::new(&device);
    println!("{LAYERS} layers of {FEATURES}, {batches} batches of {BATCH}, on {device:?}\n");

    // After some batches the loader has its memory, and asks for none while the step is recorded.
    let first = loader.iter().take(10).last().ok_or("the loader has no batch")??;
    let fixed = FixedBatch::new(first)?;
    let mut recorded = capture(&device, || network.run(fixed.batch()));
    let how = if recorded.is_hardware() { "as one recording" } else { "again, nothing is recorded here" };

    let mut rates = Vec::new();
    // The first round compiles kernels, and does not count.
    for round in 0..3 {
        let (apart, sum) = epoch(&loader, &device, |batch| Ok(network.run(batch)))?;
        let (once, same) = epoch(&loader, &device, |batch| {
            fixed.set(batch)?;
            // SAFETY: the batch, the network and the output live, and only this thread uses them.
            #[allow(unsafe_code, reason = "Burn cannot check it")]
            Ok(unsafe { recorded.replay() }.clone())
        })?;
        if (sum - same).abs() > 1e-3 * sum.abs() {
            return Err(format!("the recorded step gave {same}, the operations {sum}").into());
        }
        if round > 0 {
            rates.push([apart, once].map(|seconds| batches as f64 / seconds));
            println!("round {round}: {:>8.0} and {:>8.0} batches/s", rates[round - 1][0], rates[round - 1][1]);
        }
    }
    let mean = |way: usize| rates.iter().map(|rate| rate[way]).sum::<f64>() / rates.len() as f64;
    println!("\noperation by operation   {:>8.0} batches/s", mean(0));
    println!("{how:<24} {:>8.0} batches/s, {:.2} x, with the same results", mean(1), mean(1) / mean(0));
    println!("\n{}", loader.stats().verdict());
    Ok(())
}
