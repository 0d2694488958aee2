//! The words that all rooms share: what a thread does, which batch, which stage, which kind of memory.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a thread of the loader, or the training loop, does for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    // Of one sample, on a worker: counted and timed, but too short for a picture.
    Read,
    Augment,
    Write,
    /// Reading, augmenting and writing some samples of a batch: a worker's task.
    Fill,
    /// A Burn `Batcher` on a whole batch.
    Batch,
    SlotWait,
    Pin,
    DeviceWait,
    Transfer,
    /// A batch lies ready for the step.
    Ready,
    Finish,
    /// The step waits in `next()`.
    Wait,
    /// The step computes: from one `next()` to the following.
    Step,
}

impl Activity {
    pub(crate) const COUNT: usize = Self::Step as usize + 1;

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Augment => "augment",
            Self::Write => "write",
            Self::Fill => "fill",
            Self::Batch => "batcher",
            Self::SlotWait => "slot wait",
            Self::Pin => "pin",
            Self::DeviceWait => "device wait",
            Self::Transfer => "transfer",
            Self::Ready => "ready",
            Self::Finish => "finish",
            Self::Wait => "wait",
            Self::Step => "step",
        }
    }

    /// Whether a thread stands still meanwhile.
    pub(crate) fn is_wait(self) -> bool {
        matches!(self, Self::SlotWait | Self::DeviceWait | Self::Wait)
    }
}

/// Which batch: the epoch and the number in it, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchKey {
    pub(crate) epoch: usize,
    pub(crate) number: usize,
}

/// The part of the pipeline that an error comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Stage {
    /// The sampler, which orders the indices of an epoch.
    Sampler,
    /// Getting memory for a batch, on a worker or the pin thread.
    Allocate,
    /// `Dataset::get`, on a worker.
    Dataset,
    /// The augmentation of one sample, on a worker.
    Augment,
    /// Writing one sample into its row, or a Burn `Batcher` on a whole batch; on a worker.
    Collate,
    /// Preparing a filled batch for the link, on the pin thread.
    Pin,
    /// The copy to the device, on a transfer thread.
    Transfer,
    /// Making the user's batch of the device tensors, on the thread that calls `next()` (on a CPU backend: a worker).
    Finish,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sampler => "sampler",
            Self::Allocate => "allocate",
            Self::Dataset => "dataset",
            Self::Augment => "augment",
            Self::Collate => "collate",
            Self::Pin => "pin",
            Self::Transfer => "transfer",
            Self::Finish => "finish",
        })
    }
}

/// Where in the pipeline something failed.
///
/// `batch` counts from 0 within the epoch; `index` is the index that the dataset was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The stage that failed.
    pub stage: Stage,
    /// The epoch of the loader, from 0.
    pub epoch: usize,
    /// The batch of the epoch, from 0.
    pub batch: usize,
    /// The worker that ran the user's code, where one did.
    pub worker: Option<usize>,
    /// The dataset index of the sample, where one sample is to blame.
    pub index: Option<usize>,
}

impl Place {
    /// A batch as a whole, or what is not known of a sample of it yet.
    pub(crate) fn batch(stage: Stage, epoch: usize, batch: usize) -> Self {
        Self { stage, epoch, batch, worker: None, index: None }
    }

    /// The same, where the sample is not to blame.
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
    /// Ordinary memory, which a device can only read through a copy.
    Pageable,
    /// Page-locked memory, which a device reads at the speed of the link.
    Pinned,
    /// Page-locked huge pages, which are locked much faster.
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
