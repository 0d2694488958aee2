//! A snapshot of the statistics, and the numbers that follow from it.

use super::stage::StageStats;
use crate::vocabulary::{MemoryKind, Stage, stages};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// If at least this share of the tasks was measured, the others are assumed to be similar.
const KNOWN_SHARE: f64 = 0.5;

/// The statistics of a loader and its copies so far; see [`PinnedDataLoader::stats`](crate::PinnedDataLoader::stats).
///
/// `Display` prints a table, [`verdict`](Self::verdict) says what to change, and `serde` can store it.
///
/// ```
/// # use burn::{data::dataset::InMemDataset, prelude::*, tensor::DType};
/// # use burn_pinned::{BoxError, Collate, Field, PinnedDataLoaderBuilder, RawBatch, RowMut};
/// # struct Squares;
/// # impl Collate<f32> for Squares {
/// #     type Batch = Tensor<1>;
/// #     fn layout(&self) -> Vec<Field> { vec![Field::new("x", DType::F32, [])] }
/// #     fn write(&self, x: &f32, row: &mut RowMut<'_>) -> Result<(), BoxError> { Ok(row.put("x", x * x)?) }
/// #     fn finish(&self, mut batch: RawBatch) -> Result<Tensor<1>, BoxError> { Ok(batch.take("x")?) }
/// # }
/// # let loader = PinnedDataLoaderBuilder::new(Squares).batch_size(2).build(InMemDataset::new(vec![1.0, 2.0, 3.0]))?;
/// for batch in loader.iter() { /* train */ }
/// let stats = loader.stats();
/// assert_eq!((stats.batches, stats.items), (2, 3));
/// println!("{stats}\n{}", stats.verdict());
/// # Ok::<(), burn_pinned::Error>(())
/// ```
///
/// Statistics are always on, and workers take no lock for them. They cost less than 1 % of the throughput even with the
/// smallest samples; see `benches/figures.md`. Fast samples are timed in groups, one group in 32, and their percentiles
/// are of group means: see [`StageStats::group`]. Samples that take 20 µs or longer are timed one by one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stats {
    /// Batches delivered.
    pub batches: u64,
    /// Samples in them.
    pub items: u64,
    /// Errors delivered instead of a batch.
    pub errors: u64,
    /// All faults, including those in batches not delivered yet and in samples tried as replacements.
    pub faults: u64,
    /// Bad samples that were skipped in delivered batches.
    pub skipped: u64,
    /// Bad samples that were replaced by others in delivered batches.
    pub replaced: u64,
    /// Samples that a filter of the program left out: see [`LeftOut`](crate::fault::LeftOut).
    #[serde(default)]
    pub filtered: u64,
    /// Samples of the dataset that an epoch of all processes leaves out, at least: those that the order does not include, those that fill
    /// no batch, and documents that are too long for a row. Different epochs may leave out different samples.
    pub left_out: usize,
    /// The loader's warnings, each once, at most 16. The [`verdict`](Self::verdict) has them too.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Epochs of which at least one batch was delivered.
    pub epochs: u64,
    /// The time that the training loop waited in `next()` for a batch. With several loops at once, the time in which at
    /// least one of them waited.
    pub waited: Duration,
    /// All other time from an epoch's first call of `next()` to its end: the time of the training steps.
    pub stepped: Duration,
    /// The time from the last `iter()` to its first batch.
    pub first_batch: Duration,
    /// The part of `waited` that was for first batches of epochs.
    pub start_waited: Duration,
    /// The total time of all copies of the loader. Each copy counts while it has an epoch in progress. This equals the
    /// time of the training loop, except in training on several devices.
    pub copies_had: Duration,
    /// Worker threads of the loader and its copies. If all have ended, their last number.
    pub workers: usize,
    /// Whether the loader chooses the number of workers, because `num_workers` is not set.
    pub grows: bool,
    /// The total time of the workers: the time of the training loop multiplied by the number of workers.
    pub workers_had: Duration,
    /// Transfer threads of each copy of the loader that delivers batches; none on a CPU backend.
    pub transfer_threads: usize,
    /// The slots of each such copy: the most batches that it has in host memory.
    pub slots: usize,
    /// CPU threads for this process. 0 before the first epoch.
    pub cpu_threads: usize,
    /// The part of the time in `stages.device_wait` that ended without a release of device memory, because the training
    /// loop or Burn keeps batches.
    pub kept_wait: Duration,
    /// The time since the loader was built in which a busy remote store made requests wait, by answers that say when to
    /// retry. With several stores, the longest of their times.
    pub asked_to_wait: Duration,
    /// Whether a field of the samples is an image.
    pub images: bool,
    /// Whether the order scatters the rows of Parquet files over more pages than fit in memory, so that each page is decoded many times.
    pub scattered: bool,
    /// Whether the dataset is kept on the device, by [`build_kept`](crate::PinnedDataLoaderBuilder::build_kept). Then `finish` runs in
    /// `next()` on any device. The stages include the work while the dataset was read.
    pub is_kept: bool,
    /// The bytes of the whole dataset, if [`build_kept`](crate::PinnedDataLoaderBuilder::build_kept) can keep it: it takes at most half of
    /// the free device memory, and `augment` is not set.
    pub keepable: Option<usize>,
    /// The part of `stages.fill.busy` for which it is known whether the workers slept: tasks with reads of 1 ms or longer, on Linux.
    pub looked: Duration,
    /// The part of `looked` in which the workers slept: they neither computed nor waited for a core. Workers that wait
    /// for storage sleep.
    pub slept: Duration,
    /// How often each stage ran, and how long it took.
    pub stages: Stages,
    /// How many batches were in each queue, on average.
    pub queues: Queues,
    /// Bytes that were copied to the device; none on a CPU backend. Files that the device decodes do not count.
    pub sent_bytes: u64,
    /// Bytes of slot memory now.
    pub host_bytes: usize,
    /// The most bytes of slot memory at any time.
    pub host_bytes_peak: usize,
    /// Bytes of batches in device memory that a tensor or a launched step still uses. Known only on CUDA.
    pub device_bytes: usize,
    /// The maximum of `device_bytes`, measured whenever a copy to the device ends.
    pub device_bytes_peak: usize,
    /// Samples in the shuffle buffers of streams now.
    #[serde(default)]
    pub buffer_samples: usize,
    /// Their bytes, as [`Stream::measured`](crate::stream::Stream::measured) says.
    #[serde(default)]
    pub buffer_bytes: usize,
    /// The number of slot memory blocks ever allocated. It no longer grows once the loader is warm.
    pub allocations: u64,
    /// Blocks allocated after the first batches (twice as many batches as slots). A warm loader allocates none, except
    /// for batches of growing size and, on a CPU backend, for batches that the training loop keeps.
    pub late_allocations: u64,
    /// The time of all allocations. They run off the training path.
    pub allocating: Duration,
    /// The statistics after the first eight batches, in whose steps the device may compile and autotune its kernels.
    /// The [`verdict`](Self::verdict) ignores these batches.
    pub warm_up: Option<Box<Stats>>,
    /// The kind of the slots' memory: the slowest kind ever allocated. `None` before the first allocation.
    pub memory: Option<MemoryKind>,
}

macro_rules! stage_fields {
    ($($(#[$doc:meta])* $stage:ident $field:ident $name:literal,)*) => {
        /// The statistics of each stage, by name. [`Stage`] describes the stages.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub struct Stages {
            $($(#[$doc])* pub $field: StageStats,)*
        }

        impl Stages {
            /// Makes the statistics of all stages. `of` returns the statistics of one stage.
            pub(crate) fn from_fn(mut of: impl FnMut(Stage) -> StageStats) -> Self {
                Self { $($field: of(Stage::$stage),)* }
            }

            /// Returns the statistics of one stage.
            pub fn of(&self, stage: Stage) -> &StageStats {
                match stage {
                    $(Stage::$stage => &self.$field,)*
                }
            }
        }
    };
}
stages!(stage_fields);

/// The mean number of batches in each queue when the step requests its next batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Queues {
    /// Opened and not delivered: all batches in the pipeline.
    pub open: f64,
    /// Filled, waiting for the pin thread.
    pub to_pin: f64,
    /// Waiting for a transfer thread.
    pub to_send: f64,
    /// Ready for the step. Near 0, the step waits for the loader; near `prefetch`, the loader waits for the step.
    pub ready: f64,
}

impl Stats {
    /// The time of the training loop: waits and steps. With several loops at once, the time in which at least one of
    /// them ran.
    pub fn total(&self) -> Duration {
        self.waited + self.stepped
    }

    /// The share of the training loop's time in which it waited for data, from 0 to 1.
    pub fn wait_share(&self) -> f64 {
        share(self.waited, self.total())
    }

    /// Samples per second, over steps and waits.
    pub fn items_per_second(&self) -> f64 {
        rate(self.items as f64, self.total())
    }

    /// Gigabytes (10^9 bytes) per second of [`sent_bytes`](Self::sent_bytes), over steps and waits.
    pub fn gb_per_second(&self) -> f64 {
        rate(self.sent_bytes as f64 / 1e9, self.total())
    }

    /// The share of the workers' time in which they read, augment, write or finish batches, from 0 to 1.
    pub fn workers_busy(&self) -> f64 {
        share(self.workers_time(), self.workers_had).min(1.0)
    }

    /// The time that the workers have worked.
    pub(super) fn workers_time(&self) -> Duration {
        let Stages { read, augment, collate, batcher, pin, finish, .. } = &self.stages;
        let rows = read.busy + augment.busy + collate.busy + batcher.busy;
        rows + if self.on_host() { pin.busy + finish.busy } else { Duration::ZERO }
    }

    /// Returns the share of a stage's time in which workers slept, if it is known. It attributes all sleep in tasks to
    /// this stage, so call it for the stage that takes longest.
    pub(super) fn asleep(&self, stage: Stage) -> Option<f64> {
        let tasks = Stage::OF_SAMPLES.map(|part| self.stages.of(part).busy).iter().sum();
        let of_tasks = share(self.stages.of(stage).busy, tasks);
        (share(self.looked, tasks) >= KNOWN_SHARE && of_tasks > 0.0)
            .then(|| (share(self.slept, self.looked) / of_tasks).min(1.0))
    }

    /// The share of the transfer threads' time in which they copy, from 0 to 1.
    pub fn transfer_busy(&self) -> f64 {
        self.of_transfers(self.stages.transfer.busy)
    }

    /// The share of the transfer threads' time in which the device decodes images for them or they wait for its
    /// engines, from 0 to 1.
    pub fn decode_busy(&self) -> f64 {
        self.of_transfers(self.stages.decode.busy)
    }

    /// Returns `time` as a share of the time of those transfer threads that can have a batch.
    pub(super) fn of_transfers(&self, time: Duration) -> f64 {
        let threads = self.transfer_threads.min(self.slots.max(1));
        share(time, self.copies_had * u32::try_from(threads).unwrap_or(u32::MAX)).min(1.0)
    }

    /// Whether batches stay on the host. Then workers do the work of transfer threads and of the consumer.
    pub(super) fn on_host(&self) -> bool {
        self.transfer_threads == 0
    }
}

pub(super) fn share(part: Duration, all: Duration) -> f64 {
    if all.is_zero() { 0.0 } else { part.as_secs_f64() / all.as_secs_f64() }
}

fn rate(count: f64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count / time.as_secs_f64() }
}
