//! Burn's `DataLoader` over a pipeline.

use crate::{
    epoch::{Flow, Order},
    error::{BoxError, Error, Place, Stage},
    iter::EpochIter,
    limits::{Limited, MemoryLimit},
    panics::keep_backtraces,
    pipeline::Pipeline,
    pool::{Limits, Pool, SPARE},
    sample::guard,
    sampler::Sampler,
    slot::HostAlloc,
    source::{Source, Target, alloc_for},
    stats::{Counters, Stats},
    worker::Threads,
};
use burn::{
    data::dataloader::{DataLoader, DataLoaderIterator},
    tensor::Device,
};
use std::{
    fmt,
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Slots that take no more than this together may be more than a few.
const SMALL_SLOTS: usize = 16 << 20;

/// Makes the source of batches for a device.
pub(crate) type MakeSource<O> = Arc<dyn Fn(Target) -> Result<Arc<dyn Source<O>>, Error> + Send + Sync>;

/// Everything that a copy of a loader shares with it or takes over: the checked options.
pub(crate) struct Plan<O> {
    pub(crate) make_source: MakeSource<O>,
    pub(crate) sampler: Arc<dyn Sampler>,
    pub(crate) dataset_len: usize,
    pub(crate) batch_size: usize,
    pub(crate) drop_last: bool,
    /// The positions of each epoch's order that are this loader's.
    pub(crate) positions: Range<usize>,
    pub(crate) workers: usize,
    pub(crate) prefetch: usize,
    pub(crate) transfers: Option<usize>,
    pub(crate) limit: Option<usize>,
    pub(crate) lease_timeout: Duration,
    pub(crate) timeout: Option<Duration>,
    pub(crate) alloc: Option<Arc<dyn HostAlloc>>,
    pub(crate) shared_limit: Option<MemoryLimit>,
    pub(crate) require_pinned: bool,
    pub(crate) device: Device,
    pub(crate) counters: Arc<Counters>,
}

impl<O> Clone for Plan<O> {
    fn clone(&self) -> Self {
        Self {
            make_source: Arc::clone(&self.make_source),
            sampler: Arc::clone(&self.sampler),
            positions: self.positions.clone(),
            alloc: self.alloc.clone(),
            shared_limit: self.shared_limit.clone(),
            device: self.device.clone(),
            counters: Arc::clone(&self.counters),
            ..*self
        }
    }
}

impl<O> Plan<O> {
    /// Samples an epoch delivers.
    fn items(&self) -> usize {
        let all = self.positions.len();
        if self.drop_last { all - all % self.batch_size } else { all }
    }

    pub(crate) fn batches(&self) -> usize {
        self.items().div_ceil(self.batch_size)
    }

    /// Permits and bytes for batches of a known or unknown size.
    pub(crate) fn limits(&self, slot_bytes: Option<usize>, host: bool) -> Result<Limits, Error> {
        // One slot for each batch that may wait for the step, one being copied, one being written: more are pushed out of the CPU
        // cache before they are copied (34 against 51 GB/s with 24 and 4 slots on an H200's host). Batches that all fit in the
        // cache may be more, so that workers need not be woken for each.
        let few = self.prefetch + 2;
        let many = slot_bytes.filter(|_| !host).map_or(0, |bytes| (SMALL_SLOTS / bytes.max(1)).min(16));
        let wanted = few.max(many).min(self.batches().max(1));
        let Some(bytes) = slot_bytes else {
            return Ok(Limits { slots: wanted, bytes: self.limit.unwrap_or(usize::MAX) });
        };
        let limit = self.limit.unwrap_or_else(|| bytes.saturating_mul(wanted));
        let slots = wanted.min(limit / bytes.max(1));
        if slots == 0 {
            let problem = format!("{limit} bytes are less than one batch of {bytes}");
            return Err(Error::config(
                "pinned_limit",
                problem,
                format!("allow at least {bytes}, better {}", bytes * wanted),
            ));
        }
        // What the consumer of a CPU backend gives back is ordinary memory, kept beyond the limit on page-locked bytes.
        let spare = if host { SPARE } else { 0 };
        Ok(Limits { slots, bytes: bytes.saturating_mul(slots + spare) })
    }
}

struct Running<O> {
    pipeline: Arc<Pipeline<O>>,
    _threads: Threads,
}

/// A data loader whose workers write samples straight into (on CUDA: page-locked) host memory and whose transfer stage puts
/// device tensors ahead of the training step. Made by [`PinnedDataLoaderBuilder`](crate::PinnedDataLoaderBuilder).
///
/// It is Burn's [`DataLoader`]; `Arc<PinnedDataLoader<O>>` coerces to `Arc<dyn DataLoader<O>>`. Threads and slots come with the
/// first `iter()` and stay until the loader is dropped, which joins the threads: it waits for user code that is running, and
/// for nothing else. Each `iter()` is the loader's next epoch.
///
/// An `Err` stands at the place of the batch that failed; the iterator goes on behind it. [`Error::of`] gives the typed error.
pub struct PinnedDataLoader<O> {
    plan: Plan<O>,
    epoch: AtomicUsize,
    running: Mutex<Option<Running<O>>>,
}

impl<O> fmt::Debug for PinnedDataLoader<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedDataLoader")
            .field("sampler", &self.plan.sampler)
            .field("positions", &self.plan.positions)
            .field("batch_size", &self.plan.batch_size)
            .field("device", &self.plan.device)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl<O: Send + 'static> PinnedDataLoader<O> {
    pub(crate) fn new(plan: Plan<O>, epoch: usize) -> Self {
        Self { plan, epoch: AtomicUsize::new(epoch), running: Mutex::new(None) }
    }

    /// What this loader and all its copies (`to_device`, `slice`, and so the one that `SupervisedTraining` makes) have done.
    pub fn stats(&self) -> Stats {
        self.plan.counters.snapshot()
    }

    /// How many batches an epoch has.
    pub fn num_batches(&self) -> usize {
        self.plan.batches()
    }

    /// A loader of the same options, with threads and slots of its own, that goes on at the same epoch.
    fn copy(&self, change: impl FnOnce(&mut Plan<O>)) -> Arc<dyn DataLoader<O>> {
        let mut plan = self.plan.clone();
        change(&mut plan);
        Arc::new(Self::new(plan, self.epoch.load(Relaxed)))
    }

    /// The pipeline, started if need be.
    fn pipeline(&self) -> Result<Arc<Pipeline<O>>, Error> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = running.take_if(|running| running.pipeline.is_dead()) {
            drop(running); // this epoch gets new threads
        }
        if let Some(running) = &*running {
            return Ok(Arc::clone(&running.pipeline));
        }
        let plan = &self.plan;
        let target = Target::of(plan.device.clone());
        let host = target.host;
        let alloc = match &plan.alloc {
            Some(alloc) => Arc::clone(alloc),
            None => alloc_for(&target, plan.require_pinned)?,
        };
        let alloc = match plan.shared_limit.clone() {
            Some(limit) => Arc::new(Limited { upstream: alloc, limit }),
            None => alloc,
        };
        keep_backtraces();
        let source = (plan.make_source)(target)?;
        let pool = Pool::new(alloc, plan.limits(source.slot_bytes(), host)?, Arc::clone(&plan.counters));
        let flow = Flow {
            workers: plan.workers,
            // Copies in turn keep the link busy: 47.2, 49.5 and 49.1 GB/s with 2, 3 and 4 on an H200, 8 workers.
            transfers: if host { 0 } else { plan.transfers.unwrap_or(3) },
            prefetch: plan.prefetch,
            lease_timeout: plan.lease_timeout,
            timeout: plan.timeout,
        };
        let pipeline = Arc::new(Pipeline::new(source, pool, flow));
        let threads = Threads::start(&pipeline)?;
        *running = Some(Running { pipeline: Arc::clone(&pipeline), _threads: threads });
        Ok(pipeline)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<O: Send + 'static> DataLoader<O> for PinnedDataLoader<O> {
    /// The next epoch. Its work starts at once.
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<O> + 'a> {
        let started = Instant::now();
        let epoch = self.epoch.fetch_add(1, Relaxed);
        let plan = &self.plan;
        let run = self.pipeline().and_then(|pipeline| {
            let place = Place::batch(Stage::Sampler, epoch, 0);
            let indices = guard(place, || Ok::<_, BoxError>(plan.sampler.indices(plan.dataset_len, epoch)))?;
            let indices = Box::new(indices.skip(plan.positions.start));
            let order = Order::new(indices, plan.positions.start, plan.items(), plan.batch_size);
            let id = pipeline.start(epoch, order, plan.batches());
            Ok((pipeline, id))
        });
        Box::new(EpochIter::new(run, plan.items(), started, Arc::clone(&plan.counters)))
    }

    /// The samples of an epoch, without those that `drop_last` drops.
    fn num_items(&self) -> usize {
        self.plan.items()
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<O>> {
        self.copy(|plan| plan.device = device.clone())
    }

    /// The positions `start..end` of each epoch's global order: slices of a shuffled loader are disjoint in every epoch, and
    /// are shuffled globally, not each within itself.
    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<O>> {
        self.copy(|plan| {
            let Range { start: first, end: last } = plan.positions;
            let clamp = |at: usize| first.saturating_add(at).min(last);
            plan.positions = clamp(start)..clamp(end).max(clamp(start));
        })
    }
}
