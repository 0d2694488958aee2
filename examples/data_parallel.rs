//! One model, trained on several devices by a loop of one's own: each device has a thread, a replica of the model, an optimizer
//! and its slice of the loader. No device waits for another inside a driver.
//!
//!     cargo run --release --example data_parallel                    # two replicas on the CPU
//!     cargo run --release --features cuda --example data_parallel    # two NVIDIA GPUs
//!     cargo run --release --example data_parallel -- --accumulate 4  # steps of four batches of each device
//!     cargo run --release --example data_parallel -- --checkpoints DIR  # saves there, and goes on from there if it was killed
//!
//! To use it for a model of your own, copy the folder `replicas`: its `train` takes any module, any loader and any step.

mod replicas;

use burn::data::dataset::{Dataset, DatasetError};
use burn::nn::{Linear, LinearConfig, loss::CrossEntropyLossConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::{prelude::*, tensor::DType, tensor::activation::relu};
use burn_pinned::{BoxError, Field, KeyedRng, PinnedDataLoaderBuilder, collate};
use clap::{Parser, value_parser};
use rand::RngExt;
use replicas::{Epoch, Plan, checkpoint, train};
use std::{f32::consts::PI, fs, path::PathBuf, sync::Arc};

/// Trains one model on several devices
#[derive(Parser)]
struct Args {
    /// Devices to train on. Without the feature `cuda`, the CPU stands in for all; with it, GPUs are used in turn
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u16).range(1..))]
    devices: u16,
    #[arg(long, default_value_t = 5)]
    epochs: usize,
    /// Pictures of an epoch
    #[arg(long, default_value_t = 16_384)]
    pictures: usize,
    /// Pictures of a batch of one device
    #[arg(long, default_value_t = 64)]
    batch_size: usize,
    /// Batches of each device for one step
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    accumulate: u32,
    #[arg(long, default_value_t = 128)]
    width: usize,
    /// A folder for checkpoints. If there is one in it, the training goes on from there
    #[arg(long)]
    checkpoints: Option<PathBuf>,
}

const SIDE: usize = 28;
const CLASSES: usize = 8;
/// Pictures for the validation.
const VALID: usize = 2048;
/// Steps from one checkpoint to the next.
const EVERY: usize = 100;

/// Pictures of lines, drawn when they are asked for. The class is the direction of the line.
struct Lines(u64, usize);

impl Dataset<(Vec<u8>, usize)> for Lines {
    fn get(&self, index: usize) -> Result<(Vec<u8>, usize), DatasetError> {
        let mut rng = KeyedRng::for_order(self.0, index);
        let class = rng.random_range(0..CLASSES);
        let (sin, cos) = (PI * class as f32 / CLASSES as f32).sin_cos();
        let [x0, y0] = [0; 2].map(|_| SIDE as f32 / 2.0 + rng.random_range(-4.0..4.0f32));
        let pixel = |at: usize| {
            let (x, y) = ((at % SIDE) as f32 - x0, (at / SIDE) as f32 - y0);
            let line = if (x * sin - y * cos).abs() < 1.2 { 150 } else { 0 };
            line + rng.random_range(0..85)
        };
        Ok(((0..SIDE * SIDE).map(pixel).collect(), class))
    }

    fn len(&self) -> usize {
        self.1
    }
}

type Batch = (Tensor<2>, Tensor<1, Int>);

#[derive(Module, Debug)]
struct Model {
    layers: Vec<Linear>,
    last: Linear,
}

impl Model {
    fn new(width: usize, device: &Device) -> Self {
        let layer = |input, output| LinearConfig::new(input, output).init(device);
        Self { layers: vec![layer(SIDE * SIDE, width), layer(width, width)], last: layer(width, CLASSES) }
    }

    fn forward(&self, pixels: Tensor<2>) -> Tensor<2> {
        self.last.forward(self.layers.iter().fold(pixels, |x, layer| relu(layer.forward(x))))
    }

    /// The loss of a batch and its gradients.
    fn step(&self, (pixels, classes): Batch) -> Result<(Tensor<1>, GradientsParams), BoxError> {
        let logits = self.forward(pixels);
        let loss = CrossEntropyLossConfig::new().init(&logits.device()).forward(logits, classes);
        Ok((loss.clone(), GradientsParams::from_grads(loss.backward(), self)))
    }
}

fn devices(count: usize) -> Vec<Device> {
    #[cfg(feature = "cuda")]
    let all = Device::enumerate(burn::tensor::DeviceType::Cuda).into_vec();
    #[cfg(not(feature = "cuda"))]
    let all = vec![Device::flex()];
    all.into_iter().map(Device::autodiff).cycle().take(count).collect()
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let args = Args::parse();
    let devices = devices(args.devices.into());
    let first = devices.first().ok_or("there is no CUDA device here: leave out `--features cuda`")?;
    first.seed(42);
    let pictures = collate(
        [Field::new("pixels", DType::U8, [SIDE * SIDE]), Field::new("class", DType::I32, [])],
        |(pixels, class): &(Vec<u8>, usize), row| {
            row.write("pixels", pixels)?;
            Ok(row.put("class", i32::try_from(*class)?)?)
        },
        |mut batch| Ok((batch.take::<2, Int>("pixels")?.float() / 255.0 - 0.5, batch.take_int::<1>("class")?)),
    );
    let builder =
        |device| PinnedDataLoaderBuilder::new(pictures.clone()).batch_size(args.batch_size).set_device(device);
    let valid = builder(first.clone().inner()).build(Lines(2, VALID))?;
    // Without the last, smaller batch, all batches of a step count the same.
    let mut builder = builder(first.clone()).shuffle(42).drop_last(true).devices(devices.len());
    let mut resume = None;
    if let Some(root) = &args.checkpoints {
        fs::create_dir_all(root)?;
        resume = checkpoint::newest(root)?;
    }
    if let Some((place, folder)) = &resume {
        println!("going on from {}", folder.display());
        builder = builder.resume(place.loader.clone());
    }
    let loader = builder.build(Lines(1, args.pictures))?;
    let (accumulate, save) = (args.accumulate as usize, args.checkpoints.as_deref().map(|root| (root, EVERY)));
    let state = || loader.state();
    let plan = Plan { devices: &devices, state: &state, epochs: args.epochs, accumulate, rate: 1e-3, save, resume };
    println!("epoch   steps     loss   pictures/s   waited for data   validation");
    let tell = |epoch: Epoch, model: Model| {
        let mut right = 0.0;
        for batch in valid.iter() {
            let (pixels, classes) = batch?;
            let guess = model.forward(pixels).argmax(1).flatten::<1>(0, 1);
            right += guess.equal(classes).int().sum().into_scalar::<f64>();
        }
        let (right, waited) = (100.0 * right / VALID as f64, 100.0 * epoch.waited.div_duration_f64(epoch.took));
        let rate = (epoch.steps * accumulate * devices.len() * args.batch_size) as f64 / epoch.took.as_secs_f64();
        let Epoch { number, step, loss, .. } = epoch;
        println!("{number:>5} {step:>7} {loss:>8.4} {rate:>12.0} {waited:>15.1} % {right:>10.1} %");
        Ok(())
    };
    let init = |device: &Device| Model::new(args.width, device);
    let models = train(&plan, Arc::clone(&loader) as _, &AdamConfig::new().init(), init, Model::step, tell)?;

    let weights = models.iter().map(|model| model.valid().into_record().into_bytes()).collect::<Result<Vec<_>, _>>()?;
    if weights.iter().any(|of_one| *of_one != weights[0]) {
        return Err("the replicas differ".into());
    }
    println!("\nThe replicas are equal, bit for bit.");
    Ok(())
}
