//! What every thread of a loader adds to.

use super::{
    Queues, Stats,
    clock::{PARTS, nanos},
    span::Span,
    stage::{StageCounters, StageStats},
};
use crate::{
    activity::{Activity, BatchKey},
    memory::MemoryKind,
    timeline::Recorder,
};
use crossbeam::utils::CachePadded;
use std::{
    array,
    sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed},
    thread::available_parallelism,
    time::{Duration, Instant},
};

/// To measure what the statistics cost, this crate can be built without their clocks and histograms: with the environment variable
/// `BURN_PINNED_UNTIMED` set. See `benches/loaders.rs`.
pub(crate) const TIMED: bool = option_env!("BURN_PINNED_UNTIMED").is_none();

/// Workers share so many sets of counters for samples.
const SHARDS: usize = 4;

/// The counters of a loader and of all copies made of it by `to_device` and `slice`.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    batches: AtomicU64,
    items: AtomicU64,
    errors: AtomicU64,
    faults: AtomicU64,
    skipped: AtomicU64,
    replaced: AtomicU64,
    epochs: AtomicU64,
    first_ns: AtomicU64,
    start_waited_ns: AtomicU64,
    sent_bytes: AtomicU64,
    host_bytes: AtomicUsize,
    host_peak: AtomicUsize,
    device_bytes: AtomicUsize,
    device_peak: AtomicUsize,
    allocations: AtomicU64,
    late_allocations: AtomicU64,
    allocating_ns: AtomicU64,
    /// One bit for each kind of memory that was allocated.
    kinds: AtomicU8,
    workers: AtomicUsize,
    /// The time that earlier numbers of workers had, and the training loop's time when that of now began.
    earlier_ns: AtomicU64,
    since_ns: AtomicU64,
    transfers: AtomicUsize,
    slots: AtomicUsize,
    /// Sums over the calls of `next()`.
    seen: [AtomicU64; 4],
    stages: [CachePadded<StageCounters>; Activity::COUNT],
    samples: [[CachePadded<StageCounters>; PARTS]; SHARDS],
    /// Samples take long enough to be timed one by one.
    pub(crate) slow: AtomicBool,
    pub(crate) timeline: Recorder,
}

/// The counters that rates are made of.
#[derive(Debug, Clone, Copy, Default)]
#[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "Burn's metrics are made of these"))]
pub(crate) struct Totals {
    pub(crate) items: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) waited: Duration,
    pub(crate) stepped: Duration,
    pub(crate) host_bytes: usize,
}

impl Counters {
    /// A pipeline starts, or has other workers at work.
    pub(crate) fn started(&self, workers: usize, transfers: usize, slots: usize) {
        let (before, now) = (self.workers.swap(workers, Relaxed), self.loop_ns());
        let past = now.saturating_sub(self.since_ns.swap(now, Relaxed));
        self.earlier_ns.fetch_add(past * before as u64, Relaxed);
        self.transfers.store(transfers, Relaxed);
        self.slots.store(slots, Relaxed);
    }

    /// The training loop's time: waits and steps.
    fn loop_ns(&self) -> u64 {
        [Activity::Wait, Activity::Step].map(|activity| self.stages[activity as usize].busy_ns()).iter().sum()
    }

    /// The time from here to the end of the scope belongs to an activity.
    pub(crate) fn span(&self, activity: Activity, batch: BatchKey) -> Span<'_> {
        Span::new(self, activity, batch)
    }

    pub(crate) fn took(&self, activity: Activity, batch: BatchKey, start: Instant, end: Instant) {
        let ns = nanos(end.saturating_duration_since(start));
        match activity {
            Activity::Wait | Activity::Step if !TIMED => self.stages[activity as usize].add_total(1, ns),
            _ if !TIMED => {}
            _ => self.stages[activity as usize].add(ns),
        }
        self.timeline.add(activity, batch, start, end);
    }

    /// The counters of a part of samples, for a worker.
    pub(crate) fn sample(&self, part: Activity, worker: usize) -> &StageCounters {
        &self.samples[worker % SHARDS][(part as usize).min(PARTS - 1)]
    }

    pub(crate) fn delivered(&self, items: usize) {
        self.batches.fetch_add(1, Relaxed);
        self.items.fetch_add(items as u64, Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.errors.fetch_add(1, Relaxed);
    }

    pub(crate) fn fault(&self) {
        self.faults.fetch_add(1, Relaxed);
    }

    pub(crate) fn made_do(&self, skipped: usize, replaced: usize) {
        if skipped + replaced > 0 {
            self.skipped.fetch_add(skipped as u64, Relaxed);
            self.replaced.fetch_add(replaced as u64, Relaxed);
        }
    }

    /// From `iter()` to the first batch, and the wait in `next()` for it.
    pub(crate) fn first_batch(&self, time: Duration, waited: Duration) {
        self.epochs.fetch_add(1, Relaxed);
        self.first_ns.store(nanos(time), Relaxed);
        self.start_waited_ns.fetch_add(nanos(waited), Relaxed);
    }

    /// What lies where as the step asks for a batch: open, to pin, to send, ready.
    pub(crate) fn asked(&self, batches: [usize; 4]) {
        if TIMED {
            for (sum, count) in self.seen.iter().zip(batches) {
                sum.fetch_add(count as u64, Relaxed);
            }
        }
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Bytes of batches in device memory now.
    pub(crate) fn on_device(&self, bytes: usize) {
        self.device_bytes.store(bytes, Relaxed);
        self.device_peak.fetch_max(bytes, Relaxed);
    }

    pub(crate) fn allocated(&self, bytes: usize, kind: MemoryKind, time: Duration) {
        self.allocations.fetch_add(1, Relaxed);
        if self.batches.load(Relaxed) > 2 * self.slots.load(Relaxed) as u64 {
            self.late_allocations.fetch_add(1, Relaxed);
        }
        self.allocating_ns.fetch_add(nanos(time), Relaxed);
        self.kinds.fetch_or(1 << kind as u8, Relaxed);
        let now = self.host_bytes.fetch_add(bytes, Relaxed) + bytes;
        self.host_peak.fetch_max(now, Relaxed);
    }

    pub(crate) fn freed(&self, bytes: usize) {
        self.host_bytes.fetch_sub(bytes, Relaxed);
    }

    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "Burn's metrics are made of these"))]
    pub(crate) fn totals(&self) -> Totals {
        let busy = |activity: Activity| Duration::from_nanos(self.stages[activity as usize].busy_ns());
        Totals {
            items: self.items.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            waited: busy(Activity::Wait),
            stepped: busy(Activity::Step),
            host_bytes: self.host_bytes.load(Relaxed),
        }
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let time = |ns: &AtomicU64| Duration::from_nanos(ns.load(Relaxed));
        let stage = |activity: Activity| StageStats::of([&*self.stages[activity as usize]]);
        let sample = |part: Activity| StageStats::of(self.samples.iter().map(|shard| &*shard[part as usize]));
        let (wait, step) = (stage(Activity::Wait), stage(Activity::Step));
        let asked = wait.count.max(1) as f64;
        let workers = self.workers.load(Relaxed);
        let past = nanos(wait.busy + step.busy).saturating_sub(self.since_ns.load(Relaxed));
        let [open, to_pin, to_send, ready] = array::from_fn(|at| self.seen[at].load(Relaxed) as f64 / asked);
        Stats {
            batches: self.batches.load(Relaxed),
            items: self.items.load(Relaxed),
            errors: self.errors.load(Relaxed),
            faults: self.faults.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            replaced: self.replaced.load(Relaxed),
            epochs: self.epochs.load(Relaxed),
            waited: wait.busy,
            stepped: step.busy,
            first_batch: time(&self.first_ns),
            start_waited: time(&self.start_waited_ns),
            workers,
            workers_had: time(&self.earlier_ns) + Duration::from_nanos(past * workers as u64),
            transfer_threads: self.transfers.load(Relaxed),
            slots: self.slots.load(Relaxed),
            cpu_threads: available_parallelism().map_or(1, usize::from),
            read: sample(Activity::Read),
            augment: sample(Activity::Augment),
            write: sample(Activity::Write),
            batcher: stage(Activity::Batch),
            slot_wait: stage(Activity::SlotWait),
            pin: stage(Activity::Pin),
            device_wait: stage(Activity::DeviceWait),
            transfer: stage(Activity::Transfer),
            ready: stage(Activity::Ready),
            finish: stage(Activity::Finish),
            wait,
            step,
            queues: Queues { open, to_pin, to_send, ready },
            sent_bytes: self.sent_bytes.load(Relaxed),
            host_bytes: self.host_bytes.load(Relaxed),
            host_bytes_peak: self.host_peak.load(Relaxed),
            device_bytes: self.device_bytes.load(Relaxed),
            device_bytes_peak: self.device_peak.load(Relaxed),
            allocations: self.allocations.load(Relaxed),
            late_allocations: self.late_allocations.load(Relaxed),
            allocating: time(&self.allocating_ns),
            memory: [MemoryKind::Pageable, MemoryKind::Pinned, MemoryKind::PinnedHuge]
                .into_iter()
                .find(|kind| self.kinds.load(Relaxed) & (1 << *kind as u8) != 0),
        }
    }
}
