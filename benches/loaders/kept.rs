//! What it costs to keep the data on the device: the time to read them once, beside an epoch of `build`, and their memory.

use crate::{args::Args, case::Case, data::Item, fail, finish::Batch, link};
use burn::{data::dataset::Dataset, tensor::Device};
use burn_pinned::{Error, PinnedDataLoader};
use std::{sync::Arc, time::Instant};

/// What was measured as the data were read.
#[derive(Clone, Copy)]
pub(crate) struct Costs {
    /// Of `build_kept`.
    pub(crate) read_ms: f64,
    /// Of the first epoch of the same data by `build`, without a step.
    pub(crate) epoch_ms: f64,
    pub(crate) rows_mb: f64,
    /// What the device has in use besides, when all is read.
    pub(crate) kept_mb: Option<f64>,
}

/// Makes a loader of data that are kept.
pub(crate) fn keep(
    args: &Args,
    case: &Case,
    workers: usize,
    device: &Device,
    dataset: impl Dataset<Item> + Clone + 'static,
) -> Result<(Arc<PinnedDataLoader<Batch>>, Costs), Error> {
    let builder = || args.builder(case, workers).set_device(device.clone());
    let rows_mb = dataset.len() as f64 * (case.batch_bytes() / case.batch) as f64 / 1e6;
    let sync = || device.sync().unwrap_or_else(|error| fail(&error.to_string()));
    let ms = |started: Instant| 1e3 * started.elapsed().as_secs_f64();
    let read = builder().build(dataset.clone())?;
    sync();
    let started = Instant::now();
    read.iter().for_each(|batch| drop(batch.unwrap_or_else(|error| fail(&error.to_string()))));
    sync();
    let epoch_ms = ms(started);
    drop(read);
    device.memory_cleanup();
    sync();
    let before = link::device_mb();
    let started = Instant::now();
    let kept = builder().build_kept(dataset)?;
    let read_ms = ms(started);
    let kept_mb = link::device_mb().zip(before).map(|(after, before)| after - before);
    Ok((kept, Costs { read_ms, epoch_ms, rows_mb, kept_mb }))
}
