//! What a loader has done so far: counters that every stage adds to, a snapshot to read, and what follows from it.

use super::stage::StageStats;
use crate::vocabulary::{MemoryKind, Stage, stages};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a loader and its copies have done so far; see [`PinnedDataLoader::stats`](crate::PinnedDataLoader::stats).
///
/// `Display` prints it as a table, [`verdict`](Self::verdict) says what to change, and `serde` stores it.
///
/// ```
/// # use burn::{data::{dataloader::DataLoader, dataset::InMemDataset}, prelude::*, tensor::DType};
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
/// Statistics are always on, and workers take no lock for them: at 16 million samples a second no cost could be measured. Fast
/// samples are timed in groups, one group in 32, whose percentiles are those of group means; from 20 µs a sample on each sample
/// is timed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stats {
    /// Batches delivered.
    pub batches: u64,
    /// Samples in them.
    pub items: u64,
    /// Errors delivered instead of a batch.
    pub errors: u64,
    /// Faults met anywhere, also ahead of the consumer and in samples tried as replacements.
    pub faults: u64,
    /// Bad samples that delivered batches came without.
    pub skipped: u64,
    /// Bad samples that others took the place of, in delivered batches.
    pub replaced: u64,
    /// Epochs of which a batch was delivered.
    pub epochs: u64,
    /// Time in which the training loop was in `next()`, waiting for a batch. Of several loops at once: in which one of them was.
    pub waited: Duration,
    /// All other time from an epoch's first call of `next()` to its end: the training steps.
    pub stepped: Duration,
    /// From the last `iter()` to its first batch.
    pub first_batch: Duration,
    /// The part of `waited` that was for the first batch of an epoch.
    pub start_waited: Duration,
    /// The time of all copies of the loader together, each while an epoch of it was in progress: that of the training loop, but for
    /// training on several devices.
    pub copies_had: Duration,
    /// Worker threads of the loader, or of each of its copies; with [`Auto`](crate::Auto), those that are to work now.
    pub workers: usize,
    /// The time that they had: that of the copies, times their number.
    pub workers_had: Duration,
    /// Its transfer threads; none on a CPU backend.
    pub transfer_threads: usize,
    /// The most batches in its pipeline.
    pub slots: usize,
    /// Threads of the machine.
    pub cpu_threads: usize,
    /// The part of it that ended without a release of device memory: the training loop, or Burn, keeps batches.
    pub kept_wait: Duration,
    /// How often each stage ran, and how long it took.
    pub stages: Stages,
    /// What lay where, on average.
    pub queues: Queues,
    /// Bytes that crossed the link to the device; none on a CPU backend.
    pub sent_bytes: u64,
    /// Bytes of slot memory now.
    pub host_bytes: usize,
    /// The most bytes of slot memory at any time.
    pub host_bytes_peak: usize,
    /// Bytes of batches in device memory that a tensor, or a step that was launched, still uses; known on CUDA only.
    pub device_bytes: usize,
    /// The most of them as a copy ended.
    pub device_bytes_peak: usize,
    /// Blocks of slot memory ever allocated; stands still once warm.
    pub allocations: u64,
    /// Those after twice as many batches as there are slots: a loader that is warm makes none, but for batches of growing size
    /// and, on a CPU backend, batches that the training loop keeps.
    pub late_allocations: u64,
    /// The time that all of them took, off the training path.
    pub allocating: Duration,
    /// All this after the first few batches, in whose steps a device may compile and try out its kernels: the
    /// [`verdict`](Self::verdict) is of what came after them.
    pub warm_up: Option<Box<Stats>>,
    /// The kind of the slots' memory: the slowest of those ever allocated, `None` before the first allocation.
    pub memory: Option<MemoryKind>,
}

macro_rules! stage_fields {
    ($($(#[$doc:meta])* $stage:ident $field:ident $name:literal,)*) => {
        /// Statistics of each stage, by its name. [`Stage`] says what each is.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub struct Stages {
            $($(#[$doc])* pub $field: StageStats,)*
        }

        impl Stages {
            /// Statistics that `of` gives for each stage.
            pub(crate) fn from_fn(mut of: impl FnMut(Stage) -> StageStats) -> Self {
                Self { $($field: of(Stage::$stage),)* }
            }

            /// Those of one stage.
            pub fn of(&self, stage: Stage) -> &StageStats {
                match stage {
                    $(Stage::$stage => &self.$field,)*
                }
            }
        }
    };
}
stages!(stage_fields);

/// Batches at each stage when the step asks for its next one: means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Queues {
    /// Opened and not delivered: all in the pipeline.
    pub open: f64,
    /// Filled, waiting for the pin thread.
    pub to_pin: f64,
    /// Waiting for a transfer thread.
    pub to_send: f64,
    /// Ready for the step. Near 0 the step waits; near `prefetch` the loader does.
    pub ready: f64,
}

impl Stats {
    /// The time of the training loop: waits and steps. Of several loops at once, the time in which one of them ran.
    pub fn total(&self) -> Duration {
        self.waited + self.stepped
    }

    /// The share of its time that the training loop waited for data, from 0 to 1.
    pub fn wait_share(&self) -> f64 {
        share(self.waited, self.total())
    }

    /// Samples a second, over steps and waits.
    pub fn items_per_second(&self) -> f64 {
        rate(self.items as f64, self.total())
    }

    /// Gigabytes (10^9) a second that crossed the link, over steps and waits.
    pub fn gb_per_second(&self) -> f64 {
        rate(self.sent_bytes as f64 / 1e9, self.total())
    }

    /// The share of the workers' time in which they read, augment, write, or finish batches, from 0 to 1.
    pub fn workers_busy(&self) -> f64 {
        share(self.workers_time(), self.workers_had).min(1.0)
    }

    /// What the workers have worked.
    pub(super) fn workers_time(&self) -> Duration {
        let Stages { read, augment, collate, batcher, pin, finish, .. } = &self.stages;
        let rows = read.busy + augment.busy + collate.busy + batcher.busy;
        rows + if self.on_host() { pin.busy + finish.busy } else { Duration::ZERO }
    }

    /// The share of the transfer threads' time in which they copy, from 0 to 1.
    pub fn transfer_busy(&self) -> f64 {
        self.of_transfers(self.stages.transfer.busy)
    }

    /// A share of the time of those transfer threads that can have a batch in hand.
    pub(super) fn of_transfers(&self, time: Duration) -> f64 {
        let threads = self.transfer_threads.min(self.slots.max(1));
        share(time, self.copies_had * u32::try_from(threads).unwrap_or(u32::MAX)).min(1.0)
    }

    /// Batches do not cross a link: workers do what transfer threads and the consumer do elsewhere.
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
