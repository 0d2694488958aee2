//! The counters that every thread of a loader adds to.

use super::loops::{Loops, Sums};
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
        Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// The number of sets of counters for samples. Workers share them.
const SHARDS: usize = 4;

/// Device memory with batches.
pub(crate) trait BatchMemory: fmt::Debug + Send + Sync {
    /// Returns the bytes of the batches that are in use now. Batches that were dropped since the last call still count.
    /// If `urgent`, immediately asks the device whether it has finished with them.
    fn bytes(&self, urgent: bool) -> usize;
}

/// The counters of a loader and of all its copies by `to_device` and `slice`.
#[derive(derive_more::Debug, Default)]
pub(crate) struct Counters {
    /// The counts of consumers, and the loader's settings. A snapshot adds the rest.
    stats: Mutex<Stats>,
    /// The counts of transfer threads, and of allocations. They are separate from those of consumers, so that a batch in a forked process
    /// does not need this lock: a thread of the parent may have held it.
    of_threads: Mutex<Stats>,
    faults: AtomicU64,
    /// Whether samples may be left out: the dataset has a filter, or one was left out.
    pub(crate) leaves_out: AtomicBool,
    /// The bytes of slot memory. They are counted without a lock, because a forked process also frees blocks, and a
    /// thread of the parent may have held the lock.
    host_bytes: AtomicUsize,
    on_device: Mutex<Vec<Weak<dyn BatchMemory>>>,
    #[debug(skip)]
    stores: Mutex<Vec<Box<dyn Fn() -> Duration + Send + Sync>>>,
    copies: AtomicUsize,
    /// The times of the training loops.
    pub(crate) loops: Mutex<Loops>,
    /// The measurements of [`TaskClock`](super::TaskClock) for tasks with slow reads.
    looked_ns: AtomicU64,
    awake_ns: AtomicU64,
    /// How many batches were in each queue, summed over the calls of `next()`.
    seen: [AtomicU64; 4],
    stages: [CachePadded<StageCounters>; Stage::ALL.len()],
    samples: [[CachePadded<StageCounters>; Stage::OF_SAMPLES.len()]; SHARDS],
    /// How many of the next samples are timed one by one, because earlier ones were slow. All threads read this and the
    /// next two fields for each task. So they must not share a cache line with anything that one thread writes.
    pub(crate) timed_samples: CachePadded<AtomicUsize>,
    /// Whether reads are slow enough to check whether workers sleep.
    pub(crate) has_long_reads: CachePadded<AtomicBool>,
    pub(crate) timeline: CachePadded<Recorder>,
}

impl Counters {
    /// Changes the counts of consumers, or the loader's settings.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Stats)) {
        change(&mut self.stats.lock());
    }

    /// Changes the counts of transfer threads, or of allocations. Workers call it only when they allocate.
    pub(crate) fn note_transfer(&self, change: impl FnOnce(&mut Stats)) {
        change(&mut self.of_threads.lock());
    }

    /// Notes how long a task with slow reads took, and how long its worker was awake.
    pub(crate) fn looked(&self, took: Duration, awake: Duration) {
        self.looked_ns.fetch_add(nanos(took), Relaxed);
        self.awake_ns.fetch_add(nanos(awake), Relaxed);
    }

    /// Returns how long the tasks with reads of 1 ms or longer took, and the part of this time in which their workers computed or waited
    /// for a core. In the rest they slept. The part may lag or lead by some milliseconds. Both are 0 if the system does not report whether
    /// a thread sleeps.
    pub(crate) fn slow_reads(&self) -> [Duration; 2] {
        [&self.looked_ns, &self.awake_ns].map(|ns| Duration::from_nanos(ns.load(Relaxed)))
    }

    /// Counts another copy of the loader; returns its number.
    pub(crate) fn copy(&self) -> usize {
        self.copies.fetch_add(1, Relaxed)
    }

    pub(crate) fn took(&self, activity: Stage, batch: BatchKey, start: Instant, end: Instant) {
        let ns = nanos(end.saturating_duration_since(start));
        if TIMED {
            self.stages[activity as usize].add(ns);
        }
        self.timeline.add(activity, batch, start, end);
    }

    /// A worker's counters of one sample stage.
    pub(crate) fn sample(&self, part: Stage, worker: usize) -> &StageCounters {
        &self.samples[worker % SHARDS][(part as usize).min(Stage::OF_SAMPLES.len() - 1)]
    }

    pub(crate) fn delivered(&self, items: usize) {
        let mut stats = self.stats.lock();
        stats.items += items as u64;
        stats.batches += 1;
        let is_warm = stats.batches == EARLY_BATCHES;
        drop(stats);
        if is_warm {
            let warm_up = Box::new(self.snapshot());
            self.note(|stats| stats.warm_up = Some(warm_up));
        }
    }

    pub(crate) fn fault(&self) {
        self.faults.fetch_add(1, Relaxed);
    }

    /// Notes how many batches are in each queue when the step requests one: open, to pin, to send, ready.
    pub(crate) fn asked(&self, batches: [usize; 4]) {
        if TIMED {
            // This runs under the lock of one copy. If several copies run it at once, an addition may be lost.
            for (sum, count) in self.seen.iter().zip(batches) {
                sum.store(sum.load(Relaxed) + count as u64, Relaxed);
            }
        }
    }

    /// Adds device memory with batches of a copy of the loader.
    pub(crate) fn watch_device(&self, memory: Weak<dyn BatchMemory>) {
        let mut all = self.on_device.lock();
        all.retain(|memory| memory.strong_count() > 0);
        all.push(memory);
    }

    /// Adds a remote store that samples are fetched from: a function that returns how long it has made requests wait so
    /// far.
    pub(crate) fn watch_store(&self, asked_to_wait: impl Fn() -> Duration + Send + Sync + 'static) {
        self.stores.lock().push(Box::new(asked_to_wait));
    }

    /// Returns the bytes of batches in device memory now, and updates the peak.
    pub(crate) fn device_bytes(&self, urgent: bool) -> usize {
        let mut all = self.on_device.lock();
        all.retain(|memory| memory.strong_count() > 0);
        let bytes = all.iter().filter_map(Weak::upgrade).map(|memory| memory.bytes(urgent)).sum();
        drop(all);
        self.note_transfer(|stats| stats.device_bytes_peak = stats.device_bytes_peak.max(bytes));
        bytes
    }

    pub(crate) fn allocated(&self, bytes: usize, kind: MemoryKind, time: Duration) {
        let copies = self.on_device.lock().len().max(1);
        let now = self.host_bytes.fetch_add(bytes, Relaxed) + bytes;
        let Stats { batches, slots, .. } = *self.stats.lock();
        self.note_transfer(|stats| {
            stats.host_bytes_peak = stats.host_bytes_peak.max(now);
            stats.allocations += 1;
            stats.late_allocations += u64::from(batches > (2 * slots * copies) as u64);
            stats.allocating += time;
            stats.memory = Some(stats.memory.map_or(kind, |slowest| slowest.min(kind)));
        });
    }

    pub(crate) fn freed(&self, bytes: usize) {
        self.host_bytes.fetch_sub(bytes, Relaxed);
    }

    /// The data for rates: the times of the loops, and the statistics' samples, bytes sent and bytes of slots.
    #[cfg(feature = "metrics")]
    pub(crate) fn totals(&self) -> (Sums, Stats) {
        let sums = self.loops.lock().sums();
        let (sent_bytes, host_bytes) = (self.of_threads.lock().sent_bytes, self.host_bytes.load(Relaxed));
        let items = self.stats.lock().items;
        (sums, Stats { items, sent_bytes, host_bytes, ..Stats::default() })
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let stages = Stages::from_fn(|stage| match self.samples[0].get(stage as usize) {
            Some(_) => StageStats::of(self.samples.iter().map(|shard| &*shard[stage as usize])),
            None => StageStats::of([&*self.stages[stage as usize]]),
        });
        let asked = stages.wait.count.max(1) as f64;
        let [open, to_pin, to_send, ready] = array::from_fn(|at| self.seen[at].load(Relaxed) as f64 / asked);
        let Sums { elapsed, waited, start_waited, copies_had, workers_had, workers, .. } = self.loops.lock().sums();
        let [looked, awake] = self.slow_reads();
        let asked_to_wait = self.stores.lock().iter().map(|asked| asked()).max().unwrap_or_default();
        let device_bytes = self.device_bytes(true);
        let threads = self.of_threads.lock();
        let Stats { sent_bytes, kept_wait, device_bytes_peak, host_bytes_peak, .. } = *threads;
        let Stats { allocations, late_allocations, allocating, memory, .. } = *threads;
        drop(threads);
        Stats {
            faults: self.faults.load(Relaxed),
            waited,
            stepped: elapsed.saturating_sub(waited),
            start_waited,
            copies_had,
            workers,
            workers_had,
            asked_to_wait,
            looked,
            slept: looked.saturating_sub(awake),
            stages,
            queues: Queues { open, to_pin, to_send, ready },
            host_bytes: self.host_bytes.load(Relaxed),
            device_bytes,
            device_bytes_peak,
            host_bytes_peak,
            sent_bytes,
            kept_wait,
            allocations,
            late_allocations,
            allocating,
            memory,
            ..self.stats.lock().clone()
        }
    }
}
