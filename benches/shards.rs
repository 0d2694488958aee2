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

use burn::tensor::{DType, Device, Int};
use burn_pinned::{BoxError, Field, PinnedDataLoaderBuilder, collate, data::Rows, memory::Decoder, vision::*};
use clap::Parser;
use finish::Raw;
use std::{
    path::PathBuf,
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

fn main() -> Result<(), BoxError> {
    let args = Args::parse();
    let device = if cfg!(feature = "cuda") { Device::default() } else { Device::flex() };
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
            Ok((image, batch.take_int::<1>("label")?))
        },
    );
    let builder = PinnedDataLoaderBuilder::new(collate)
        .batch_size(args.batch)
        .shuffle(1)
        .augment((RandomResizedCrop::new(SIDE)?, RandomHorizontalFlip::default()))
        .set_device(device.clone());
    let builder = if args.workers > 0 { builder.num_workers(args.workers) } else { builder };
    let loader = builder.build(rows.open()?)?;
    let step = Step::new(args.matmuls, args.matmul_side, &device);

    for epoch in 0..args.epochs {
        let (started, before) = (Instant::now(), loader.stats());
        let (mut images, mut first, mut waited, mut last) = (0, Duration::ZERO, Duration::ZERO, None);
        let mut batches = loader.iter();
        loop {
            let asked = Instant::now();
            let Some(batch) = batches.next() else { break };
            if images > 0 {
                waited += asked.elapsed();
            }
            let (image, _) = batch?;
            let rows = image.dims()[0];
            last = Some(step.run(Raw::Floats(image)));
            if images == 0 {
                device.sync()?;
                first = started.elapsed();
            }
            images += rows;
        }
        device.sync()?;
        drop(last);
        let seconds = started.elapsed().as_secs_f64();
        let stats = loader.stats().since(&before);
        let decoder = if stats.stages.decode.count > 0 { "device" } else { "host" };
        println!(
            "{}",
            serde_json::json!({
                "gpu": link::gpu(), "burn": "0.22.1", "burn_pinned": env!("CARGO_PKG_VERSION"), "loader": "burn-pinned",
                "case": if is_tar { "tar" } else { "parquet" }, "decoder": decoder, "workers": args.workers, "matmuls": args.matmuls,
                "batch": args.batch, "epoch": epoch, "images": images, "items_per_s": (images as f64 / seconds).round(),
                "first_batch_ms": (1e3 * first.as_secs_f64()).round(), "wait": rounded(waited.as_secs_f64() / seconds),
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
