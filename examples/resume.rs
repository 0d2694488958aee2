//! A training that is killed twice, and ends with the same model as one that was not, bit for bit.
//!
//!     cargo run --release --example resume
//!
//! It trains in one process, and then once more in three. The first two are killed (SIGKILL) in the middle of an epoch. The next
//! one goes on from the newest checkpoint, with another number of workers.

#[path = "replicas/checkpoint.rs"]
mod checkpoint;

use burn::data::dataset::{Dataset, DatasetError};
use burn::module::{ModuleVisitor, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, loss::CrossEntropyLossConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::{prelude::*, tensor::DType, tensor::activation::relu};
use burn_pinned::{BoxError, Field, KeyedRng, PinnedDataLoaderBuilder, collate, vision::*};
use checkpoint::Place;
use image::{Rgb, RgbImage};
use rand::RngExt;
use std::hash::{DefaultHasher, Hasher};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs, io::BufRead, io::BufReader, path::Path};

const EPOCHS: usize = 4;
/// Steps from one checkpoint to the next.
const EVERY: usize = 10;

/// Pictures of discs and squares, drawn when they are asked for.
struct Shapes;

impl Dataset<(Image, usize)> for Shapes {
    fn get(&self, index: usize) -> Result<(Image, usize), DatasetError> {
        let mut rng = KeyedRng::for_order(1, index);
        let (class, ink) = (rng.random_range(0..2), rng.random_range(100..=255));
        let [x, y, r] = [18.0..30.0, 18.0..30.0, 9.0..16.0f32].map(|range| rng.random_range(range));
        let picture = RgbImage::from_fn(48, 48, |at_x, at_y| {
            let (x, y) = ((at_x as f32 - x).abs(), (at_y as f32 - y).abs());
            let inside = if class == 0 { x.hypot(y) <= r } else { x.max(y) <= 0.8 * r };
            Rgb([if inside { ink } else { 40 }; 3])
        });
        Ok((picture.into(), class))
    }

    fn len(&self) -> usize {
        1200
    }
}

#[derive(Module, Debug)]
struct Model {
    conv: Conv2d,
    norm: BatchNorm, // a checkpoint has its averages too
    head: Linear,
}

impl Model {
    fn new(device: &Device) -> Self {
        let conv = Conv2dConfig::new([3, 16], [5, 5]).with_stride([2, 2]).init(device);
        Self { conv, norm: BatchNormConfig::new(16).init(device), head: LinearConfig::new(16, 2).init(device) }
    }

    fn loss(&self, images: Tensor<4>, labels: Tensor<1, Int>) -> Tensor<1> {
        let x = relu(self.norm.forward(self.conv.forward(images)));
        let logits = self.head.forward(x.mean_dims(&[2, 3]).flatten(1, 3));
        CrossEntropyLossConfig::new().init(&logits.device()).forward(logits, labels)
    }

    /// A hash of every weight.
    fn hash(&self) -> u64 {
        struct Weights(DefaultHasher);
        impl ModuleVisitor for Weights {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                self.0.write(param.val().into_data().as_bytes());
            }
        }
        let mut weights = Weights(DefaultHasher::new());
        self.valid().visit(&mut weights);
        weights.0.finish()
    }
}

/// Trains to the end, from the newest checkpoint in `root`, if there is one. It prints a line for each step, with a hash of the batch.
fn train(root: &Path, workers: usize) -> Result<(), BoxError> {
    // On a GPU the batches are the same too. But sums may have another order there, and the weights other bits.
    let device = Device::flex().autodiff();
    device.seed(42);
    let images = Field::image("image", 32).with_dtype(DType::F32).normalize([0.5; 3], [0.5; 3]);
    let pictures = collate(
        [images, Field::new("label", DType::I32, [])],
        |(image, label): &(Image, usize), row| {
            row.image("image", image)?;
            Ok(row.put("label", i32::try_from(*label)?)?)
        },
        |mut batch| Ok((batch.take::<4, Float>("image")?, batch.take_int::<1>("label")?)),
    );
    let changes = (RandomResizedCrop::new(32)?.scale(0.6, 1.0)?, RandomHorizontalFlip::default());
    let (mut model, mut optim, mut step) = (Model::new(&device), AdamConfig::new().init(), 0);
    let mut builder = PinnedDataLoaderBuilder::new(pictures).batch_size(32).shuffle(42).augment(changes);
    if let Some((place, folder)) = checkpoint::newest(root)? {
        (model, optim) = checkpoint::load(&folder, model, optim)?;
        builder = builder.resume(place.loader);
        step = place.step;
    }
    let loader = builder.num_workers(workers).set_device(device).build(Shapes)?;
    while loader.state().epoch() < EPOCHS {
        for batch in loader.iter() {
            let (images, labels) = batch?;
            let mut seen = DefaultHasher::new();
            [images.to_data(), labels.to_data()].iter().for_each(|data| seen.write(data.as_bytes()));
            let loss = model.loss(images, labels);
            let grads = GradientsParams::from_grads(loss.backward(), &model);
            model = optim.step(2e-3, model, grads);
            step += 1;
            println!("{step} {:016x} {}", seen.finish(), loss.into_scalar::<f32>());
            if step.is_multiple_of(EVERY) {
                checkpoint::save(root, &model, &optim, &Place { step, loader: loader.state() })?;
            }
        }
    }
    println!("weights {:016x}", model.hash());
    Ok(())
}

/// Starts a process that trains, and kills it once it has told of a step. Returns its lines.
fn process(root: &Path, workers: usize, kill_at: Option<usize>) -> Result<Vec<String>, BoxError> {
    fs::create_dir_all(root)?;
    let mut command = Command::new(env::current_exe()?);
    let mut child = command.arg(root).arg(workers.to_string()).stdout(Stdio::piped()).spawn()?;
    let (mut lines, mut killed) = (Vec::new(), false);
    for line in BufReader::new(child.stdout.take().ok_or("no output")?).lines() {
        let line = line?;
        if kill_at.is_some_and(|step| line.starts_with(&format!("{step} "))) {
            child.kill()?; // it cannot tidy up. What it told until then is still read
            killed = true;
        }
        lines.push(line);
    }
    let status = child.wait()?;
    if killed || status.success() { Ok(lines) } else { Err(format!("a process ended by itself: {status}").into()) }
}

fn main() -> Result<ExitCode, BoxError> {
    burn_pinned::prepare()?;
    if let [root, workers] = env::args().skip(1).collect::<Vec<_>>().as_slice() {
        return train(root.as_ref(), workers.parse()?).map(|()| ExitCode::SUCCESS);
    }
    let folder = tempfile::tempdir()?;
    println!("run         workers  steps      batches, losses, weights");
    let whole = process(&folder.path().join("whole"), 2, None)?;
    let steps = whole.len() - 1; // and a line of the weights
    println!("in one go         2  1 to {steps:<4}  {}", whole[steps]);
    let (mut same, mut done) = (true, 0);
    for (number, workers, kill_at) in [(1, 1, Some(steps * 3 / 8)), (2, 4, Some(steps * 5 / 7)), (3, 3, None)] {
        let lines = process(&folder.path().join("parts"), workers, kill_at)?;
        let from = whole.iter().position(|line| Some(line) == lines.first());
        let agrees = from.is_some_and(|from| from <= done && whole[from..].starts_with(&lines));
        done = from.unwrap_or(0) + lines.len();
        let ended = if kill_at.is_some() { "the same, then killed" } else { "the same to the end" };
        let (first, last) = (from.map_or(0, |from| from + 1), done.min(steps));
        println!("process {number}   {workers:>7}  {first} to {last:<4}  {}", if agrees { ended } else { "DIFFERENT" });
        same &= agrees;
    }
    same &= done == whole.len();
    println!(
        "\nThe model is {}the same, bit for bit, as after the training in one go.",
        if same { "" } else { "NOT " }
    );
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
