//! One model, trained on several devices by a loop of one's own: each device has a thread, a replica of the model, an optimizer
//! and its slice of the loader. No device waits for another inside a driver.
//!
//!     cargo run --release --example data_parallel                    # two replicas on the CPU
//!     cargo run --release --features cuda --example data_parallel    # two NVIDIA GPUs
//!     cargo run --release --example data_parallel -- --accumulate 4  # steps of four batches of each device
//!     cargo run --release --example data_parallel -- --checkpoints DIR  # saves there, and goes on from there if it was killed
//!
//! To use it for a model of your own, copy the folder `replicas`: its `train` takes any module, any loader and any step.

#[path = "data_parallel/lines.rs"]
mod lines;
#[path = "data_parallel/model.rs"]
mod model;
mod replicas;
#[path = "data_parallel/resident.rs"]
mod resident;

use burn::{data::dataloader::DataLoader, optim::AdamConfig, prelude::*};
use burn_pinned::{BoxError, PinnedDataLoaderBuilder};
use clap::{Parser, value_parser};
use lines::{Batch, Lines, ToBatch};
use model::Model;
use replicas::{Epoch, Plan, checkpoint, train};
use resident::Resident;
use serde_json::json;
use std::{fs, path::PathBuf, process::ExitCode, sync::Arc};

/// Trains one model on several devices.
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
    /// Width of the model. With 700 it has a million parameters, with 4,600 25 million
    #[arg(long, default_value_t = 128)]
    width: usize,
    /// How often a step uses the middle layer: more of them make it longer, with as many parameters
    #[arg(long, default_value_t = 1)]
    passes: usize,
    #[arg(long, default_value_t = 1e-3)]
    learning_rate: f64,
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// A folder for checkpoints. If there is one in it, the training goes on from there
    #[arg(long)]
    checkpoints: Option<PathBuf>,
    /// Steps from one checkpoint to the next
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    every: u32,
    /// Each device takes its first batch again and again: what the steps cost without a loader
    #[arg(long)]
    resident: bool,
    /// Prints each epoch as a line of JSON
    #[arg(long)]
    json: bool,
}

/// Pictures for the validation.
const VALID: usize = 2048;

#[cfg(feature = "cuda")]
fn devices(count: usize) -> Result<Vec<Device>, BoxError> {
    let all = Device::enumerate(burn::tensor::DeviceType::Cuda).into_vec();
    if all.is_empty() {
        return Err("there is no CUDA device here: leave out `--features cuda`".into());
    }
    Ok(all.into_iter().map(Device::autodiff).cycle().take(count).collect())
}

#[cfg(not(feature = "cuda"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature `cuda` it may fail")]
fn devices(count: usize) -> Result<Vec<Device>, BoxError> {
    Ok(vec![Device::flex().autodiff(); count])
}

fn run(args: &Args) -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let devices = devices(args.devices.into())?;
    devices[0].seed(args.seed);
    let mut builder = PinnedDataLoaderBuilder::new(ToBatch)
        .batch_size(args.batch_size)
        .shuffle(args.seed)
        .drop_last(true) // all batches of a step count the same
        .devices(devices.len())
        .set_device(devices[0].clone());
    let resume = match &args.checkpoints {
        Some(root) => {
            fs::create_dir_all(root)?;
            checkpoint::newest(root)?
        }
        None => None,
    };
    if let Some((place, folder)) = &resume {
        println!("going on from {}", folder.display());
        builder = builder.resume(place.loader.clone());
    }
    let pinned = builder.build(Lines { len: args.pictures, seed: args.seed })?;
    let mut loader: Arc<dyn DataLoader<_>> = Arc::clone(&pinned) as _;
    if args.resident {
        loader = Arc::new(Resident { loader, batches: pinned.num_batches() });
    }
    let plan = Plan {
        devices: &devices,
        state: &|| pinned.state(),
        epochs: args.epochs,
        accumulate: args.accumulate as usize,
        rate: args.learning_rate,
        save: args.checkpoints.as_deref().map(|root| (root, args.every as usize)),
        resume,
    };
    let parameters = Model::new(args.width, args.passes, &devices[0]).num_params();
    let valid =
        PinnedDataLoaderBuilder::new(ToBatch).batch_size(args.batch_size).set_device(devices[0].clone().inner());
    let valid = valid.build(Lines { len: VALID, seed: !args.seed })?;
    let tell = |epoch: Epoch, model: Model| report(args, parameters, &epoch, || accuracy(&model, &*valid));
    if !args.json {
        println!("{} replicas of {parameters} parameters, batches of {} each\n", devices.len(), args.batch_size);
        println!("epoch   steps     loss   ms a step   pictures/s   waited for data   validation");
    }
    let init = |device: &Device| Model::new(args.width, args.passes, device);
    let models = train(&plan, loader, &AdamConfig::new().init(), init, Model::step, tell)?;

    let weights = |model: &Model| model.valid().into_record().into_bytes();
    let first = weights(&models[0])?;
    for (rank, model) in models.iter().enumerate() {
        if weights(model)? != first {
            return Err(format!("the replicas of device 0 and device {rank} differ").into());
        }
    }
    if !args.json {
        println!("\nThe replicas are equal, bit for bit.");
    }
    Ok(())
}

fn report(
    args: &Args,
    parameters: usize,
    epoch: &Epoch,
    accuracy: impl FnOnce() -> Result<f64, BoxError>,
) -> Result<(), BoxError> {
    let seconds = epoch.took.as_secs_f64();
    let step_ms = 1e3 * seconds / epoch.steps as f64;
    let pictures = usize::from(args.devices) * args.accumulate as usize * args.batch_size;
    let (per_s, waited) = ((epoch.steps * pictures) as f64 / seconds, epoch.waited.as_secs_f64() / seconds);
    if args.json {
        let line = json!({
            "epoch": epoch.number, "loss": epoch.loss, "step_ms": step_ms, "pictures_per_s": per_s, "waited": waited,
            "devices": args.devices, "parameters": parameters, "batch": args.batch_size, "passes": args.passes, "resident": args.resident,
        });
        println!("{line}");
        return Ok(());
    }
    let (number, step, loss) = (epoch.number, epoch.step, epoch.loss);
    let (waited, right) = (100.0 * waited, 100.0 * accuracy()?);
    println!("{number:>5} {step:>7} {loss:>8.4} {step_ms:>11.2} {per_s:>12.0} {waited:>15.1} % {right:>10.1} %");
    Ok(())
}

/// The share of pictures that the model tells right.
fn accuracy(model: &Model, pictures: &dyn DataLoader<Batch>) -> Result<f64, BoxError> {
    let mut right = 0.0;
    for batch in pictures.iter() {
        let batch = batch?;
        let guess = model.forward(batch.pixels).argmax(1).flatten::<1>(0, 1);
        right += guess.equal(batch.classes).int().sum().into_scalar::<f64>();
    }
    Ok(right / pictures.num_items() as f64)
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
