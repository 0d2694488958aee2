//! From shards of photographs to normalised batches on the device, with random crops: one JSON line an epoch.
//!
//!     cargo bench --features cuda,turbo,parquet --bench shards -- --workers 15 'train-*.tar'
//!
//! `benches/today.py` runs it beside PyTorch's loaders, on the same files.

#[path = "loaders/finish.rs"]
#[allow(dead_code, reason = "another bench's")]
mod finish;
#[path = "support/link.rs"]
#[allow(dead_code, reason = "another bench's")]
mod link;
#[path = "loaders/step.rs"]
mod step;

use burn::{
    data::dataloader::{DataLoader, split::split_dataloader},
    tensor::{DType, Device, Int, Tensor},
};
use burn_pinned::{BoxError, Field, PinnedDataLoaderBuilder, collate, data::Rows, memory::Decoder, vision::*};
use clap::Parser;
use finish::Raw;
use std::{
    panic::resume_unwind,
    path::PathBuf,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use step::Step;

const SIDE: usize = 224;

/// Times data sets of photographs, from shards to the device.
#[derive(Parser)]
struct Args {
    /// Tar shards of `jpg` and `cls`, or Parquet files of `image` and `label`
    #[arg(required = true)]
    shards: Vec<PathBuf>,
    /// Worker threads; 0 lets the loader choose
    #[arg(long, default_value_t = 0)]
    workers: usize,
    #[arg(long, default_value_t = 256)]
    batch: usize,
    #[arg(long, default_value_t = 3)]
    epochs: usize,
    /// auto, host or device
    #[arg(long, default_value = "auto")]
    decoder: Decoder,
    /// GPUs that share each epoch. Without the feature `cuda`, the CPU stands in for all
    #[arg(long, default_value_t = 1)]
    devices: usize,
    /// Products of matrices in each step
    #[arg(long, default_value_t = 0)]
    matmuls: usize,
    /// Side of those matrices
    #[arg(long, default_value_t = 4096)]
    matmul_side: usize,
    /// `cargo bench` passes it
    #[arg(long, hide = true)]
    bench: bool,
}

/// Images and labels, on a device.
type Batch = (Tensor<4>, Tensor<1, Int>);

/// What a loop has seen of an epoch.
#[derive(Default)]
struct Seen {
    images: usize,
    first: Duration,
    waited: Duration,
}

/// Takes the batches of an epoch, with a step for each.
fn epoch(loader: &dyn DataLoader<Batch>, device: &Device, step: &Step) -> Result<Seen, BoxError> {
    let (started, mut seen, mut last) = (Instant::now(), Seen::default(), None);
    let mut batches = loader.iter();
    loop {
        let asked = Instant::now();
        let Some(batch) = batches.next() else { break };
        if seen.images > 0 {
            seen.waited += asked.elapsed();
        }
        let (image, _) = batch?;
        let rows = image.dims()[0];
        last = Some(step.run(Raw::Floats(image)));
        if seen.images == 0 {
            device.sync()?;
            seen.first = started.elapsed();
        }
        seen.images += rows;
    }
    device.sync()?;
    drop(last);
    Ok(seen)
}

fn device(_number: usize) -> Device {
    #[cfg(feature = "cuda")]
    return Device::cuda(_number);
    #[cfg(not(feature = "cuda"))]
    Device::flex()
}

fn main() -> Result<(), BoxError> {
    let args = Args::parse();
    let devices: Vec<Device> = (0..args.devices).map(device).collect();
    let is_tar = args.shards.iter().any(|path| path.extension().is_some_and(|end| end == "tar"));
    let rows = match is_tar {
        true => Rows::<(Image, usize)>::tar(&args.shards).columns(["jpg", "cls"]),
        false => Rows::parquet(&args.shards).columns(["image", "label"]),
    };
    let collate = collate(
        [Field::image("image", SIDE).decoder(args.decoder), Field::new("label", DType::I64, [])],
        |(image, label): &(Image, usize), row| {
            row.image("image", image)?;
            Ok(row.put("label", *label as i64)?)
        },
        |mut batch| {
            let image = batch.take::<4, Int>("image")?.float() / 127.5 - 1.0;
            Ok::<Batch, BoxError>((image, batch.take_int::<1>("label")?))
        },
    );
    let builder = PinnedDataLoaderBuilder::new(collate)
        .batch_size(args.batch)
        .shuffle(1)
        .augment((RandomResizedCrop::new(SIDE)?, RandomHorizontalFlip::default()))
        .devices(args.devices)
        .set_device(devices.first().ok_or("no devices")?.clone());
    let builder = if args.workers > 0 { builder.num_workers(args.workers) } else { builder };
    let loader = builder.build(rows.open()?)?;
    let slices = match &*devices {
        [_] => vec![Arc::clone(&loader) as Arc<dyn DataLoader<Batch>>],
        _ => split_dataloader(Arc::clone(&loader) as _, &devices),
    };
    let steps: Vec<Step> = devices.iter().map(|device| Step::new(args.matmuls, args.matmul_side, device)).collect();

    for number in 0..args.epochs {
        let (started, before) = (Instant::now(), loader.stats());
        let all = thread::scope(|scope| {
            let loops = slices.iter().zip(&devices).zip(&steps);
            let loops: Vec<_> =
                loops.map(|((slice, device), step)| scope.spawn(move || epoch(&**slice, device, step))).collect();
            let ends = loops.into_iter().map(|end| end.join().unwrap_or_else(|panic| resume_unwind(panic)));
            ends.collect::<Result<Vec<Seen>, BoxError>>()
        })?;
        let seconds = started.elapsed().as_secs_f64();
        let images: usize = all.iter().map(|seen| seen.images).sum();
        let first = all.iter().map(|seen| seen.first).max().unwrap_or_default();
        // The mean of the devices.
        let waited = all.iter().map(|seen| seen.waited.as_secs_f64()).sum::<f64>() / all.len() as f64;
        let stats = loader.stats().since(&before);
        let decoder = if stats.stages.decode.count > 0 { "device" } else { "host" };
        println!(
            "{}",
            serde_json::json!({
                "gpu": link::gpu(), "burn": "0.22.1", "burn_pinned": env!("CARGO_PKG_VERSION"), "loader": "burn-pinned",
                "case": if is_tar { "tar" } else { "parquet" }, "decoder": decoder, "workers": stats.workers, "devices": args.devices, "matmuls": args.matmuls,
                "batch": args.batch, "epoch": number, "images": images, "items_per_s": (images as f64 / seconds).round(),
                "first_batch_ms": (1e3 * first.as_secs_f64()).round(), "wait": rounded(waited / seconds),
                "workers_busy": rounded(stats.workers_busy()), "decode_busy": rounded(stats.decode_busy()),
                "transfer_busy": rounded(stats.transfer_busy()),
            })
        );
    }
    Ok(())
}

/// A share, to a thousandth.
fn rounded(share: f64) -> f64 {
    (1e3 * share).round() / 1e3
}
