//! The options.

use super::{augment::Changes, bad::Bad, devices::Strategy};
use burn_pinned::memory::Decoder;
use clap::{Parser, ValueEnum, value_parser};
use std::path::PathBuf;

/// Trains a small image classifier, fed by burn-pinned or by Burn's own loader, and measures both
#[derive(Parser)]
#[command(version)]
pub(crate) struct Args {
    /// A folder with one sub-folder of PNG, JPEG, GIF or WebP files for each class; or Parquet files, tar shards or an MDS
    /// folder with columns `image` and `label` (in tars `jpg` and `cls`); without it, shapes are drawn once and used
    #[arg(long, num_args(1..), value_name = "PATHS")]
    pub(crate) data: Vec<PathBuf>,
    /// The same for validation. Without it, a fifth of each class is for that
    #[arg(long, num_args(1..), value_name = "PATHS", requires = "data")]
    pub(crate) valid: Vec<PathBuf>,
    #[arg(long, default_value_t = 10)]
    pub(crate) epochs: usize,
    #[arg(long, default_value_t = 64)]
    pub(crate) batch_size: usize,
    /// Threads that read and decode. Without it, burn-pinned chooses, and Burn's loader has as many as the machine
    #[arg(long)]
    pub(crate) workers: Option<usize>,
    /// Threads that copy to the device. Without it, the loader chooses
    #[arg(long)]
    pub(crate) transfers: Option<usize>,
    /// Batches ready ahead of the step
    #[arg(long, default_value_t = 2)]
    pub(crate) prefetch: usize,
    /// Devices to train on. Without the feature `cuda`, one CPU device stands in for all
    #[arg(long, default_value_t = 1)]
    pub(crate) devices: usize,
    /// How Burn trains on several devices. Without it, `ddp` with the feature `cuda`, and else `multi`
    #[arg(long, value_enum, default_value_t = Strategy::default())]
    pub(crate) strategy: Strategy,
    /// With several devices: flushes each one every `MS` milliseconds, since Burn's strategies can deadlock without it; 0 does not
    #[arg(long, value_name = "MS", default_value_t = 2)]
    pub(crate) flush_every: u64,
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    #[arg(long, value_enum, default_value_t = Which::Pinned)]
    pub(crate) loader: Which,
    /// What changes training images, after a random crop and a flip. Burn's own loader makes no random changes
    #[arg(long, value_enum, default_value_t = Changes::Light)]
    pub(crate) augment: Changes,
    /// Keep the images on the device, cut to --side. Crops and flips are made there, and nothing of --augment
    #[arg(long)]
    pub(crate) keep: bool,
    /// What is done about images that cannot be read. Burn's own loader stops at the first
    #[arg(long, value_enum, default_value_t = Bad::Skip)]
    pub(crate) bad_samples: Bad,
    /// Where JPEGs are decoded: auto, host or device
    #[arg(long, default_value = "auto")]
    pub(crate) decoder: Decoder,
    /// Images are cropped and resized to this side
    #[arg(long, default_value_t = 32, value_parser = value_parser!(u32).range(1..=16_384))]
    pub(crate) side: u32,
    /// How many images of each class to draw if there is no --data
    #[arg(long, default_value_t = 500)]
    pub(crate) per_class: usize,
    /// Go on after this epoch of the last run. Burn keeps the best epoch and the last two. All other options must be as
    /// they were then, except --workers and --prefetch. Burn's own loader starts over with the order of its first epoch
    #[arg(long, value_name = "N")]
    pub(crate) checkpoint_epoch: Option<usize>,
    /// A file to write: a trace (.json) of the end of the run
    #[arg(long)]
    pub(crate) timeline: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Which {
    Pinned,
    Burn,
}
