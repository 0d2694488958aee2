//! The counters that every thread of a loader adds to.

use super::loops::{CopyId, Loops, Sums};
use crate::{
    observe::{
        stats::{EARLY_BATCHES, Queues, StageCounters, StageStats, Stages, Stats, TIMED, nanos},
        timeline::Recorder,
    },
    sync::locks::Mutex,
    vocabulary::{BatchKey, MemoryKind, Stage},
};
use crossbeam_utils::CachePadded;
use std::{
    array, fmt,
    sync::{
        OnceLock, Weak,
        atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// The number of sets of counters for samples. Workers share them.
const SHARDS: usize = 4;

/// Device memory that holds batches.
pub(crate) trait OnDevice: fmt::Debug + Send + Sync {
    /// Returns the bytes of the batches that are in use now. Batches that were dropped since the last call still count.
    /// If it is `urgent`, the device is asked at once whether it has done with them.
    fn bytes(&self, urgent: bool) -> usize;
}

/// Says how long a store has made requests wait so far.
pub(crate) type AskedToWait = Box<dyn Fn() -> Duration + Send + Sync>;

/// The counters of a loader and of all copies made of it by `to_device` and `slice`.
#[derive(derive_more::Debug, Default)]
pub(crate) struct Counters {
    batches: AtomicU64,
    items: AtomicU64,
    errors: AtomicU64,
    faults: AtomicU64,
    skipped: AtomicU64,
    replaced: AtomicU64,
    epochs: AtomicU64,
    first_ns: AtomicU64,
    /// The time of those waits for room on the device that ended without a release.
    kept_wait_ns: AtomicU64,
    sent_bytes: AtomicU64,
    host_bytes: AtomicUsize,
    host_peak: AtomicUsize,
    on_device: Mutex<Vec<Weak<dyn OnDevice>>>,
    #[debug(skip)]
    stores: Mutex<Vec<AskedToWait>>,
    device_peak: AtomicUsize,
    allocations: AtomicU64,
    late_allocations: AtomicU64,
    allocating_ns: AtomicU64,
    /// One bit for each kind of memory that was allocated.
    kinds: AtomicU8,
    copies: AtomicUsize,
    /// The times of the training loops.
    pub(crate) loops: Loops,
    transfers: AtomicUsize,
    slots: AtomicUsize,
    cpu_threads: AtomicUsize,
    /// Whether the loader chooses the number of workers.
    grows: AtomicBool,
    /// Whether a field of the samples is an image.
    images: AtomicBool,
    /// Whether the order scatters rows over more pages than are kept.
    scattered: AtomicBool,
    /// How many samples of the data set an epoch leaves out.
    left_out: AtomicUsize,
    /// Whether the data set is kept on the device.
    is_kept: AtomicBool,
    /// The bytes of the data set if the device can keep it, else 0.
    keepable: AtomicUsize,
    /// What [`TaskClock`](super::TaskClock) saw of tasks whose reads take long.
    looked_ns: AtomicU64,
    awake_ns: AtomicU64,
    warm_up: OnceLock<Box<Stats>>,
    /// How many batches were at each place, summed over the calls of `next()`.
    seen: [AtomicU64; 4],
    stages: [CachePadded<StageCounters>; Stage::ALL.len()],
    samples: [[CachePadded<StageCounters>; Stage::OF_SAMPLES.len()]; SHARDS],
    /// All threads read this for each task, as they read the recorder. So it must not share a cache line with what one
    /// of them writes.
    pub(crate) slow: CachePadded<Slow>,
    pub(crate) timeline: CachePadded<Recorder>,
}

/// How long samples take now. This decides which of them are timed.
#[derive(Debug, Default)]
pub(crate) struct Slow {
    /// How many of the next samples are timed one by one, since others took long.
    pub(crate) samples: AtomicUsize,
    /// Whether reads take long enough for a look at whether workers sleep.
    pub(crate) reads: AtomicBool,
}

/// The tasks whose reads take 1 ms or longer, where the system tells whether a thread sleeps. On other systems both
/// times are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SlowReads {
    /// The time that these tasks took.
    pub(crate) took: Duration,
    /// The part of `took` in which the workers computed or waited for a core. In the rest they slept. It may be a few
    /// milliseconds late or early.
    pub(crate) awake: Duration,
}

/// The totals from which rates are made.
#[derive(Debug, Clone, Copy, Default)]
#[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "Burn's metrics are made of these"))]
pub(crate) struct Totals {
    pub(crate) items: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) waited: Duration,
    pub(crate) elapsed: Duration,
    /// Steps that have ended.
    pub(crate) steps: u64,
    pub(crate) host_bytes: usize,
}

impl Counters {
    /// Notes how many threads of the machine are for this process.
    pub(crate) fn set_cpu_threads(&self, threads: usize) {
        self.cpu_threads.store(threads, Relaxed);
    }

    /// Notes whether the loader chooses the number of workers.
    pub(crate) fn set_grows(&self, grows: bool) {
        self.grows.store(grows, Relaxed);
    }

    /// Notes that the order scatters rows over more pages than are kept.
    #[cfg(feature = "data")]
    pub(crate) fn set_scattered(&self) {
        self.scattered.store(true, Relaxed);
    }

    /// Notes how many samples of the data set an epoch leaves out.
    pub(crate) fn set_left_out(&self, samples: usize) {
        self.left_out.store(samples, Relaxed);
    }

    /// Notes whether a field of the samples is an image.
    pub(crate) fn set_images(&self, images: bool) {
        self.images.store(images, Relaxed);
    }

    /// Notes that the data set is kept on the device from now on.
    pub(crate) fn set_kept(&self) {
        self.is_kept.store(true, Relaxed);
        self.set_keepable(None);
    }

    /// Notes the bytes of the data set, if the device can keep it.
    pub(crate) fn set_keepable(&self, bytes: Option<usize>) {
        self.keepable.store(bytes.unwrap_or(0), Relaxed);
    }

    /// Notes how long a task with long reads took, and how long its worker was awake.
    pub(crate) fn looked(&self, took: Duration, awake: Duration) {
        self.looked_ns.fetch_add(nanos(took), Relaxed);
        self.awake_ns.fetch_add(nanos(awake), Relaxed);
    }

    /// Returns whether workers sleep or compute while reads take long.
    pub(crate) fn slow_reads(&self) -> SlowReads {
        let time = |ns: &AtomicU64| Duration::from_nanos(ns.load(Relaxed));
        SlowReads { took: time(&self.looked_ns), awake: time(&self.awake_ns) }
    }

    /// Notes the transfer threads and slots of a copy, when it starts.
    pub(crate) fn started(&self, transfers: usize, slots: usize) {
        self.transfers.store(transfers, Relaxed);
        self.slots.store(slots, Relaxed);
    }

    /// Counts another copy of the loader; returns its id.
    pub(crate) fn copy(&self) -> CopyId {
        CopyId(self.copies.fetch_add(1, Relaxed))
    }

    pub(crate) fn took(&self, activity: Stage, batch: BatchKey, start: Instant, end: Instant) {
        let ns = nanos(end.saturating_duration_since(start));
        if TIMED {
            self.stages[activity as usize].add(ns);
        }
        self.timeline.add(activity, batch, start, end);
    }

    /// The counters of a part of samples, for a worker.
    pub(crate) fn sample(&self, part: Stage, worker: usize) -> &StageCounters {
        &self.samples[worker % SHARDS][(part as usize).min(Stage::OF_SAMPLES.len() - 1)]
    }

    pub(crate) fn delivered(&self, items: usize) {
        self.items.fetch_add(items as u64, Relaxed);
        if self.batches.fetch_add(1, Relaxed) + 1 == EARLY_BATCHES {
            self.warm_up.get_or_init(|| Box::new(self.snapshot()));
        }
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

    /// Notes the time from `iter()` to the first batch.
    pub(crate) fn first_batch(&self, time: Duration) {
        self.epochs.fetch_add(1, Relaxed);
        self.first_ns.store(nanos(time), Relaxed);
    }

    /// Notes how many batches are at each place as the step asks for one: open, to pin, to send, ready.
    pub(crate) fn asked(&self, batches: [usize; 4]) {
        if TIMED {
            // This runs under the lock of a copy. If several copies ask at once, an addition may be lost.
            for (sum, count) in self.seen.iter().zip(batches) {
                sum.store(sum.load(Relaxed) + count as u64, Relaxed);
            }
        }
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Notes how long a transfer thread waited for room on the device and then went on without a release.
    pub(crate) fn kept(&self, waited: Duration) {
        self.kept_wait_ns.fetch_add(nanos(waited), Relaxed);
    }

    /// Adds device memory that batches of a copy of the loader are in.
    pub(crate) fn watch_device(&self, memory: Weak<dyn OnDevice>) {
        let mut all = self.on_device.lock();
        all.retain(|memory| memory.strong_count() > 0);
        all.push(memory);
    }

    /// Adds a store that samples are fetched from.
    pub(crate) fn watch_store(&self, asked_to_wait: AskedToWait) {
        self.stores.lock().push(asked_to_wait);
    }

    /// Returns the bytes of batches in device memory now, and notes them for their peak.
    pub(crate) fn device_bytes(&self, urgent: bool) -> usize {
        let mut all = self.on_device.lock();
        all.retain(|memory| memory.strong_count() > 0);
        let bytes = all.iter().filter_map(Weak::upgrade).map(|memory| memory.bytes(urgent)).sum();
        self.device_peak.fetch_max(bytes, Relaxed);
        bytes
    }

    pub(crate) fn allocated(&self, bytes: usize, kind: MemoryKind, time: Duration) {
        self.allocations.fetch_add(1, Relaxed);
        let early = 2 * self.slots.load(Relaxed) * self.on_device.lock().len().max(1);
        if self.batches.load(Relaxed) > early as u64 {
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
        let Sums { elapsed, waited, steps, .. } = self.loops.sums();
        Totals {
            items: self.items.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            waited,
            elapsed,
            steps,
            host_bytes: self.host_bytes.load(Relaxed),
        }
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let time = |ns: &AtomicU64| Duration::from_nanos(ns.load(Relaxed));
        let stages = Stages::from_fn(|stage| match self.samples[0].get(stage as usize) {
            Some(_) => StageStats::of_samples(self.samples.iter().map(|shard| &*shard[stage as usize])),
            None => StageStats::of_events(&self.stages[stage as usize]),
        });
        let asked = stages.wait.count.max(1) as f64;
        let Sums { elapsed, waited, start_waited, copies_had, workers_had, .. } = self.loops.sums();
        let device_bytes = self.device_bytes(true);
        let SlowReads { took: looked, awake } = self.slow_reads();
        let [open, to_pin, to_send, ready] = array::from_fn(|at| self.seen[at].load(Relaxed) as f64 / asked);
        Stats {
            batches: self.batches.load(Relaxed),
            items: self.items.load(Relaxed),
            errors: self.errors.load(Relaxed),
            faults: self.faults.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            replaced: self.replaced.load(Relaxed),
            epochs: self.epochs.load(Relaxed),
            waited,
            stepped: elapsed.saturating_sub(waited),
            first_batch: time(&self.first_ns),
            start_waited,
            copies_had,
            workers: self.loops.last_workers(),
            grows: self.grows.load(Relaxed),
            workers_had,
            transfer_threads: self.transfers.load(Relaxed),
            slots: self.slots.load(Relaxed),
            cpu_threads: self.cpu_threads.load(Relaxed),
            kept_wait: time(&self.kept_wait_ns),
            asked_to_wait: self.stores.lock().iter().map(|asked| asked()).max().unwrap_or_default(),
            images: self.images.load(Relaxed),
            scattered: self.scattered.load(Relaxed),
            left_out: self.left_out.load(Relaxed),
            is_kept: self.is_kept.load(Relaxed),
            keepable: Some(self.keepable.load(Relaxed)).filter(|bytes| *bytes > 0),
            looked,
            slept: looked.saturating_sub(awake),
            stages,
            queues: Queues { open, to_pin, to_send, ready },
            sent_bytes: self.sent_bytes.load(Relaxed),
            host_bytes: self.host_bytes.load(Relaxed),
            host_bytes_peak: self.host_peak.load(Relaxed),
            device_bytes,
            device_bytes_peak: self.device_peak.load(Relaxed),
            allocations: self.allocations.load(Relaxed),
            late_allocations: self.late_allocations.load(Relaxed),
            allocating: time(&self.allocating_ns),
            warm_up: self.warm_up.get().cloned(),
            memory: [MemoryKind::Pageable, MemoryKind::Pinned, MemoryKind::PinnedHuge]
                .into_iter()
                .find(|kind| self.kinds.load(Relaxed) & (1 << *kind as u8) != 0),
        }
    }
}
