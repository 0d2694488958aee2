//! What the training loop of the example `data_parallel` costs on several devices. It prints a line of JSON for each epoch.
//! `several_gpus.py` runs it; benches/README.md says how.

#[path = "../tests/common/data_parallel.rs"]
mod common;
#[path = "data_parallel/resident.rs"]
mod resident;

use burn::{data::dataloader::DataLoader, optim::AdamConfig, prelude::*};
use burn_pinned::{BoxError, PinnedDataLoaderBuilder};
use clap::{Parser, value_parser};
use common::{
    lines::{Lines, ToBatch},
    model::Model,
    replicas::{Epoch, Plan, train},
};
use resident::Resident;
use serde_json::json;
use std::sync::Arc;

/// Trains one model on several devices, and times each epoch
#[derive(Parser)]
struct Args {
    /// Without the feature `cuda`, the CPU stands in for all devices; with it, GPUs are used in turn
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
    /// Width of the model. With 700 it has a million parameters, with 4,600 25 million
    #[arg(long, default_value_t = 128)]
    width: usize,
    /// How often a step uses the middle layer: more of them make it longer, with as many parameters
    #[arg(long, default_value_t = 1)]
    passes: usize,
    /// Each device takes its first batch again and again: what the steps cost without a loader
    #[arg(long)]
    resident: bool,
    /// `cargo bench` passes it
    #[arg(long, hide = true)]
    bench: bool,
}

fn devices(count: usize) -> Vec<Device> {
    #[cfg(feature = "cuda")]
    let all = Device::enumerate(burn::tensor::DeviceType::Cuda).into_vec();
    #[cfg(not(feature = "cuda"))]
    let all = vec![Device::flex()];
    all.into_iter().map(Device::autodiff).cycle().take(count).collect()
}

fn report(args: &Args, parameters: usize, epoch: &Epoch) {
    let (seconds, pictures) = (epoch.took.as_secs_f64(), usize::from(args.devices) * args.batch_size);
    let line = json!({
        "epoch": epoch.number, "loss": epoch.loss, "step_ms": 1e3 * seconds / epoch.steps as f64,
        "pictures_per_s": (epoch.steps * pictures) as f64 / seconds, "waited": epoch.waited.as_secs_f64() / seconds,
        "devices": args.devices, "parameters": parameters, "batch": args.batch_size, "passes": args.passes,
        "resident": args.resident,
    });
    println!("{line}");
}

fn main() -> Result<(), BoxError> {
    burn_pinned::prepare()?;
    let args = Args::parse();
    let devices = devices(args.devices.into());
    let first = devices.first().ok_or("there is no CUDA device here: leave out `--features cuda`")?;
    first.seed(42);
    let builder = PinnedDataLoaderBuilder::new(ToBatch).batch_size(args.batch_size).shuffle(42);
    let builder = builder.drop_last(true).devices(devices.len()).set_device(first.clone());
    let pinned = builder.build(Lines { len: args.pictures, seed: 42 })?;
    let mut loader: Arc<dyn DataLoader<_>> = Arc::clone(&pinned) as _;
    if args.resident {
        loader = Arc::new(Resident { loader, batches: pinned.num_batches() });
    }
    let plan = Plan {
        devices: &devices,
        state: &|| pinned.state(),
        epochs: args.epochs,
        accumulate: 1,
        rate: 1e-3,
        save: None,
        resume: None,
    };
    let init = |device: &Device| Model::new(args.width, args.passes, device);
    let parameters = init(first).num_params();
    let tell = |epoch: Epoch, _: Model| {
        report(&args, parameters, &epoch);
        Ok(())
    };
    let models = train(&plan, loader, &AdamConfig::new().init(), init, Model::step, tell)?;

    let weights = models.iter().map(|model| model.valid().into_record().into_bytes()).collect::<Result<Vec<_>, _>>()?;
    if weights.iter().any(|of_one| *of_one != weights[0]) {
        return Err("the replicas differ".into());
    }
    Ok(())
}
