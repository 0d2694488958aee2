//! The types that all modules share: stages, batch keys, places of errors, and kinds of memory.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The table of stages. It passes each stage to a macro: its description, its variant of [`Stage`], its field of
/// [`Stages`](crate::observe::Stages), and its name. Statistics, errors, verdicts, the timeline and traces use only
/// this table.
///
/// The first three stages are for single samples ([`Stage::OF_SAMPLES`]).
macro_rules! stages {
    ($with:ident $($args:tt)*) => {
        $with! {
            $($args)*
            /// `Dataset::get` of a sample, on a worker.
            Read read "read",
            /// The augmentation of a sample, on a worker.
            Augment augment "augment",
            /// `Collate::write` of a sample, on a worker.
            Collate collate "collate",
            /// A worker's task: some samples of a batch are read, augmented and written.
            Fill fill "fill",
            /// A worker waits in `Dataset::get` for bytes from a remote store: the sum for a task.
            Fetch fetch "fetch",
            /// A Burn `Batcher` on a whole batch, on a worker.
            Batcher batcher "batcher",
            /// The sampler: it plans an epoch in `iter()`, or gives the indices of a batch on a worker.
            Sampler sampler "sampler",
            /// A worker waits for the items of a batch that a stream gives.
            Stream stream "stream",
            /// A worker waits for a slot: first for a permit, then for its memory. The time in which it works on other
            /// batches does not count. With a batcher, the pin thread waits for the memory.
            SlotWait slot_wait "slot wait",
            /// Preparing a batch for the link, on the pin thread (on a CPU backend: on a worker).
            Pin pin "pin",
            /// A transfer thread waits until one more batch may be in device memory.
            DeviceWait device_wait "device wait",
            /// Decoding the images of a batch on the device, on a transfer thread.
            Decode decode "decode",
            /// The copy of a batch to the device, until it is done, on a transfer thread.
            Transfer transfer "transfer",
            /// A batch is ready and waits for the step.
            Ready ready "ready",
            /// `Collate::finish`, in `next()` (on a CPU backend: on a worker).
            Finish finish "finish",
            /// A call of `next()`, including `finish`.
            Wait wait "wait",
            /// The step computes: from a batch's delivery to the next call of `next()`.
            Step step "step",
        }
    };
}
pub(crate) use stages;

macro_rules! stage {
    ($($(#[$doc:meta])* $stage:ident $field:ident $name:literal,)*) => {
        /// A stage in the life of a batch: something that a thread of the loader, or the training loop, does for it.
        /// Errors, statistics, verdicts and the timeline share these names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Stage {
            $($(#[$doc])* $stage,)*
        }

        impl Stage {
            /// All of them, in the order of the table.
            pub(crate) const ALL: &[Self] = &[$(Self::$stage),*];

            /// The name in tables, errors and traces.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$stage => $name,)*
                }
            }
        }
    };
}
stages!(stage);

impl Stage {
    /// The stages that process samples one by one.
    pub(crate) const OF_SAMPLES: [Self; 3] = [Self::Read, Self::Augment, Self::Collate];
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Identifies an iterator of a copy of a loader. Two iterators may be in an epoch with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IteratorId(pub(crate) u64);

/// Identifies a batch. The pipeline uses `iterator` and `number`. Statistics and errors use the epoch, the number and the device. Random
/// keys use the epoch and the position. All count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchKey {
    pub(crate) epoch: usize,
    pub(crate) number: usize,
    /// The position of its first sample in the epoch's global order. It is 0 until a worker opens the batch.
    pub(crate) position: usize,
    /// How many batches before it the consumer had still to take when it was opened.
    pub(crate) ahead: usize,
    /// The number of the device among those that the loader is cut for.
    pub(crate) device: Option<u16>,
    /// The iterator that the batch is for.
    pub(crate) iterator: IteratorId,
}

impl BatchKey {
    /// No batch: for what happens before the first one.
    pub(crate) const NONE: Self = Self::new(0, 0);

    pub(crate) const fn new(epoch: usize, number: usize) -> Self {
        Self { epoch, number, position: 0, ahead: 0, device: None, iterator: IteratorId(0) }
    }
}

/// Where in the pipeline something failed.
///
/// `batch` counts from 0 within the epoch. `index` is the index passed to the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The stage that failed.
    pub stage: Stage,
    /// The epoch of the loader, from 0.
    pub epoch: usize,
    /// The batch of the epoch, from 0.
    pub batch: usize,
    /// The device that the batch is for, from 0, if the loader is cut for several
    /// ([`devices`](crate::PinnedDataLoaderBuilder::devices)).
    pub device: Option<u16>,
    /// The worker that ran the user's code, if a worker ran it.
    pub worker: Option<usize>,
    /// The dataset index of the sample, if one sample is to blame.
    pub index: Option<usize>,
}

impl Place {
    /// The place of a whole batch, or of a sample in it that is not known yet.
    pub(crate) const fn batch(stage: Stage, BatchKey { epoch, number, device, .. }: BatchKey) -> Self {
        Self { stage, epoch, batch: number, device, worker: None, index: None }
    }

    /// Whether something failed in this batch.
    pub(crate) fn is_in(&self, batch: BatchKey) -> bool {
        (self.epoch, self.batch, self.device) == (batch.epoch, batch.number, batch.device)
    }

    /// Returns the same place without the sample, where the sample is not to blame.
    pub(crate) fn of_a_batch(self) -> Self {
        Self { index: None, ..self }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.stage)?;
        if let Some(index) = self.index {
            write!(f, " of sample {index}")?;
        }
        write!(f, " (epoch {}, batch {}", self.epoch, self.batch)?;
        if let Some(device) = self.device {
            write!(f, ", device {device}")?;
        }
        if let Some(worker) = self.worker {
            write!(f, ", worker {worker}")?;
        }
        f.write_str(")")
    }
}

/// What kind of memory a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MemoryKind {
    /// Ordinary memory. A device can read it only through an extra copy.
    Pageable,
    /// Page-locked memory. A device reads it at full link speed.
    Pinned,
    /// Page-locked huge pages. Locking them is much faster.
    PinnedHuge,
}

impl MemoryKind {
    /// Whether the memory is page-locked.
    pub fn is_pinned(self) -> bool {
        self != Self::Pageable
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pageable => "pageable",
            Self::Pinned => "page-locked",
            Self::PinnedHuge => "page-locked (huge pages)",
        })
    }
}
