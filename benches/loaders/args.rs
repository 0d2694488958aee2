//! The options, and what they choose: the device, the data and the batches before the clock.

use crate::{
    case::Case,
    data::{self, SIDE},
    fail,
    finish::Finish,
};
use burn::tensor::{DType, Device};
use burn_pinned::memory::Decoder;
use clap::Parser;
use std::path::PathBuf;

/// Times data loaders: throughput, the first batch, what the step waits for, and memory.
#[derive(Parser, Clone)]
pub(crate) struct Args {
    /// ram-u8-224, small-u8-28, rows-f32-20, jpeg, or `custom` with --shape
    #[arg(long, value_delimiter = ',', default_value = "ram-u8-224,small-u8-28,jpeg")]
    pub(crate) case: Vec<String>,
    /// pinned, burn; kept (`build_kept`, after an epoch of `pinned` to compare with); without a loader: resident (one finished
    /// batch again and again: the step alone), finishing (bytes on the device, finished in each step), fresh (as finishing, and
    /// each step makes two tensors of a number, by `Tensor::from_data`)
    #[arg(long, value_delimiter = ',', default_value = "pinned,burn")]
    pub(crate) loader: Vec<String>,
    /// Worker threads of each loader; 0 lets `pinned` choose, and with 0 Burn's loads in the loop's own thread
    #[arg(long, value_delimiter = ',', default_value = "2")]
    pub(crate) workers: Vec<usize>,
    /// Says on stderr what the loader logs, as what `--workers 0` makes it try
    #[arg(long)]
    pub(crate) log: bool,
    /// Timed batches per round; where decoding is slow, many times the workers: Burn's end a batch each at the same time
    #[arg(long, default_value_t = 100)]
    pub(crate) steps: usize,
    /// Batches of an epoch; epochs follow each other. By default one epoch has all batches
    #[arg(long)]
    pub(crate) epoch: Option<usize>,
    /// Batches before the clock starts; by default enough to drain what a loader queued meanwhile
    #[arg(long)]
    warm: Option<usize>,
    /// Rounds; the loaders take turns, figures are medians
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Row shape of the case `custom`
    #[arg(long, default_value = "3x224x224")]
    shape: String,
    /// Samples per batch; by default 256, or 1024 for small-u8-28
    #[arg(long)]
    batch: Option<usize>,
    /// Folder of JPEGs for the case `jpeg`; without files it gets 512 like photographs
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where the images of the case `jpeg` are decoded, by `pinned`: auto, host or device
    #[arg(long, default_value = "auto")]
    pub(crate) decoder: Decoder,
    /// Values of raw samples
    #[arg(long, default_value = "u8", value_parser = ["u8", "f32"])]
    dtype: String,
    /// What `Collate::finish` makes of the bytes: `raw` nothing, `scaled`, `f16` and `bf16` a normalised batch, `mix` with MixUp or CutMix too
    #[arg(long, value_delimiter = ',', default_value = "raw", value_parser = ["raw", "scaled", "f16", "bf16", "mix"])]
    pub(crate) finish: Vec<String>,
    /// Let each step cast, scale and reduce the batch, with this number of matrix products besides
    #[arg(long)]
    pub(crate) matmuls: Option<usize>,
    /// Microseconds that the loop computes for each batch on its own thread, besides
    #[arg(long, default_value_t = 0)]
    pub(crate) busy_us: u64,
    /// Side of those matrices
    #[arg(long, default_value_t = 8192)]
    pub(crate) matmul_side: usize,
    /// Batches ready ahead of the step, for `pinned`
    #[arg(long, default_value_t = 2)]
    pub(crate) prefetch: usize,
    /// Transfer threads, for `pinned`; by default what the device takes
    #[arg(long)]
    pub(crate) transfers: Option<usize>,
    /// Bytes of the longest file that a device decodes, for the case `jpeg`; by default what the field takes
    #[arg(long)]
    room: Option<usize>,
    /// Shuffle, in every loader; else in none
    #[arg(long)]
    pub(crate) shuffle: bool,
    /// Milliseconds that each sample takes to read while the worker sleeps, for `pinned` and `kept`
    #[arg(long)]
    pub(crate) sleep: Option<u64>,
    /// Slots, for `pinned`: a limit of this number of batches
    #[arg(long)]
    pub(crate) slots: Option<usize>,
    /// Do not measure what the workers alone fill, which takes as long as a round
    #[arg(long)]
    pub(crate) no_fill: bool,
    /// cpu, or cuda with the feature
    #[arg(long, default_value = if cfg!(feature = "cuda") { "cuda" } else { "cpu" })]
    device: String,
    /// A file to write: a trace (.json) of what `pinned` did
    #[arg(long)]
    pub(crate) timeline: Option<PathBuf>,
    /// JSON lines, one per loader and round, instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// `cargo bench` passes it
    #[arg(long, hide = true)]
    bench: bool,
}

impl Args {
    pub(crate) fn device(&self) -> Device {
        match self.device.as_str() {
            #[cfg(feature = "cuda")]
            "cuda" => Device::cuda(0),
            "cpu" => Device::flex(),
            other => fail(&format!("--device {other}: use `cpu`, or `cuda` with `--features cuda`")),
        }
    }

    pub(crate) fn case(&self, name: &str, finish: &str) -> Case {
        let dtype = if self.dtype == "f32" { DType::F32 } else { DType::U8 };
        let raw = |shape: [usize; 3], batch, dtype| (data::raw(&shape, dtype), shape, batch, dtype);
        let (store, shape, batch, dtype) = match name {
            "ram-u8-224" => raw([3, SIDE, SIDE], 256, dtype),
            "small-u8-28" => raw([1, 28, 28], 1024, dtype),
            "rows-f32-20" => raw([1, 1, 20], 128, DType::F32),
            "custom" => {
                let sides: Vec<usize> = self.shape.split('x').filter_map(|side| side.parse().ok()).collect();
                let Ok(shape) = sides.try_into() else { fail("--shape takes three numbers, as in 3x224x224") };
                raw(shape, 256, dtype)
            }
            "jpeg" => match data::jpegs(&self.data.clone().unwrap_or_else(default_folder), 512) {
                Ok(store) => (store, [3, SIDE, SIDE], 256, DType::U8),
                Err(error) => fail(&format!("JPEGs for the case `jpeg`: {error}")),
            },
            other => fail(&format!("--case {other}: use ram-u8-224, small-u8-28, rows-f32-20, jpeg or custom")),
        };
        let name = if dtype == DType::F32 { name.replace("u8", "f32") } else { name.to_string() };
        let finish = match finish {
            "scaled" => Finish::Scaled(DType::F32),
            "f16" => Finish::Scaled(DType::F16),
            "bf16" => Finish::Scaled(DType::BF16),
            "mix" => Finish::Mixed,
            _ => Finish::Raw,
        };
        Case {
            name,
            store,
            shape,
            dtype,
            batch: self.batch.unwrap_or(batch),
            finish,
            decoder: self.decoder,
            room: self.room,
        }
    }

    /// Batches before the clock. A loader that is not outrun by the step fills its queue, 100 deep in Burn, while the clock
    /// stands still; what it took from there must be gone.
    pub(crate) fn warm(&self, case: &Case) -> usize {
        let queued = if self.matmuls.is_some() { 110 } else { 20 };
        self.warm.unwrap_or(if case.name == "jpeg" { 4 } else { queued })
    }
}

/// Where files like photographs are kept from run to run.
fn default_folder() -> PathBuf {
    std::env::temp_dir().join("burn-pinned-photos")
}
