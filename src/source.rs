//! What the pipeline needs to know of how batches are made; `rows.rs` and `items.rs` are the two ways.

use crate::{
    batch::{BatchPlace, RawBatch},
    error::Error,
    policy::{Bad, Faults},
    pool::{Permit, Pool, Wanted},
    sample::BatchPlan,
    slot::{HeapAlloc, HostAlloc, Slot},
    upload::Uploader,
};
use burn::tensor::Device;
use std::{any::Any, sync::Arc, time::Duration};

/// Where batches go.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) device: Device,
    /// The device computes in host memory: bytes are handed over without a copy, and there are no streams.
    pub(crate) host: bool,
}

impl Target {
    /// Finds out what kind of device this is.
    pub(crate) fn of(device: Device) -> Self {
        // Burn's devices are type-erased, and which variants exist depends on features that this crate does not control: the name
        // is what remains. One that is not known here is treated as an accelerator, which is slower on a CPU but never wrong.
        let name = format!("{:?}", device.clone().without_autodiff());
        let host = ["Flex", "NdArray", "Cube(Cpu", "LibTorch(Cpu"].iter().any(|cpu| name.contains(cpu));
        Self { device, host }
    }
}

/// The host memory that a device takes best: page-locked for CUDA with the feature `cuda`, else of the heap.
///
/// Loaders find it by themselves; this is for an [`allocator`](crate::PinnedDataLoaderBuilder::allocator) that wraps it.
///
/// # Errors
/// [`Error::Config`] if page-locked memory is required and cannot be had.
pub fn host_alloc(device: &Device, require_pinned: bool) -> Result<Arc<dyn HostAlloc>, Error> {
    alloc_for(&Target::of(device.clone()), require_pinned)
}

pub(crate) fn alloc_for(target: &Target, require_pinned: bool) -> Result<Arc<dyn HostAlloc>, Error> {
    #[cfg(feature = "cuda")]
    if let Some(ordinal) = crate::cuda::ordinal(&target.device) {
        match crate::cuda::PinnedAlloc::new(ordinal, require_pinned) {
            Ok(alloc) => return Ok(Arc::new(alloc)),
            Err(problem) if require_pinned => {
                return Err(Error::config("require_pinned", problem, "leave it off to go on with ordinary memory"));
            }
            Err(problem) => log::warn!("burn-pinned goes on with ordinary memory, which is slower: {problem}"),
        }
    }
    if !require_pinned {
        return Ok(Arc::new(HeapAlloc));
    }
    let device = &target.device;
    let (problem, advice) = if target.host {
        (format!("{device:?} computes in host memory, which is not page-locked"), "leave it off for this device")
    } else {
        (format!("page-locked memory for {device:?} needs CUDA"), "build with the feature `cuda` and use a CUDA device")
    };
    Err(Error::config("require_pinned", problem, advice))
}

/// A batch on its way from the workers to the device.
pub(crate) enum Filled<O> {
    /// All rows are written. `steps` holds the steps of every (row, field) if any field is padded.
    Rows { slot: Slot, plan: Arc<BatchPlan>, steps: Vec<usize>, longest: Vec<usize> },
    /// A Burn batcher made the user's batch on the host.
    Made { batch: O, plan: Arc<BatchPlan>, permit: Permit },
    /// The same, its tensors taken out and packed into a slot. `parts` is known to the source.
    Packed { batch: O, plan: Arc<BatchPlan>, slot: Slot, parts: Box<dyn Any + Send> },
    /// Something failed; the error takes the batch's place.
    Failed(Error),
    /// All of its samples are skipped.
    Empty,
}

impl<O> Filled<O> {
    /// Which batch it is, if it is one.
    pub(crate) fn at(&self) -> Option<BatchPlace> {
        match self {
            Self::Rows { plan, .. } | Self::Made { plan, .. } | Self::Packed { plan, .. } => Some(plan.at),
            Self::Failed(_) | Self::Empty => None,
        }
    }
}

/// A batch that the consumer may have.
pub(crate) enum Ready<O> {
    /// Tensors on the device, to be finished on the consumer's thread.
    Raw(RawBatch),
    /// The user's batch. On a CPU backend it keeps its permit until it is delivered.
    Done { batch: O, items: usize, permit: Option<Permit> },
    /// Nothing: all of its samples are skipped.
    Empty,
}

/// Some rows of a batch, for one worker.
pub(crate) trait Task<O>: Send {
    fn rows(&self) -> usize;
    /// Does the work.
    fn run(self: Box<Self>, worker: usize) -> Done<O>;
}

/// What a task gives back.
pub(crate) struct Done<O> {
    /// The batch, from the last of its tasks to end.
    pub(crate) filled: Option<Filled<O>>,
    /// What the rows took, without the work on the batch as a whole.
    pub(crate) rows_took: Duration,
    /// With the batch: those of its samples that were skipped or replaced.
    pub(crate) bad: Bad,
}

/// Makes batches of indices.
pub(crate) trait Source<O>: Send + Sync {
    fn target(&self) -> &Target;

    /// What is done about faults.
    fn faults(&self) -> &Faults;

    /// The bytes of a batch's slot, where they are known ahead.
    fn slot_bytes(&self) -> Option<usize>;

    /// Cuts a batch into tasks of at most `chunk` rows. On a worker.
    fn open(
        self: Arc<Self>,
        plan: Arc<BatchPlan>,
        permit: Permit,
        pool: &Arc<Pool>,
        wanted: Wanted<'_>,
        chunk: usize,
    ) -> Result<Vec<Box<dyn Task<O>>>, Error>;

    /// Whether filled batches go through [`pin`](Self::pin).
    fn needs_pin(&self) -> bool;

    /// Prepares a filled batch for the link: closes the gaps of padded rows, packs pageable tensors. On the pin thread, or
    /// a worker on a CPU backend.
    fn pin(&self, filled: Filled<O>, pool: &Arc<Pool>, wanted: Wanted<'_>) -> Result<Filled<O>, Error>;

    /// Hands a batch to the device. On a transfer thread, or a worker on a CPU backend.
    fn send(&self, filled: Filled<O>, pool: &Arc<Pool>, uploader: &mut Uploader) -> Result<Ready<O>, Error>;

    /// Makes the user's batch. On the consumer's thread, or a worker on a CPU backend.
    fn finish(&self, batch: RawBatch) -> Result<O, Error>;
}
