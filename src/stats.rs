//! What a loader has done so far: counters that every stage adds to, and a snapshot to read.

use crate::slot::MemoryKind;
use std::{
    fmt,
    sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

/// The counters of a loader and of all copies made of it by `to_device` and `slice`.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    batches: AtomicU64,
    items: AtomicU64,
    errors: AtomicU64,
    faults: AtomicU64,
    skipped: AtomicU64,
    replaced: AtomicU64,
    waited_ns: AtomicU64,
    stepped_ns: AtomicU64,
    first_ns: AtomicU64,
    host_bytes: AtomicUsize,
    host_peak: AtomicUsize,
    allocations: AtomicU64,
    allocating_ns: AtomicU64,
    /// One bit for each kind of memory that was allocated.
    kinds: AtomicU8,
}

impl Counters {
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
        self.skipped.fetch_add(skipped as u64, Relaxed);
        self.replaced.fetch_add(replaced as u64, Relaxed);
    }

    pub(crate) fn waited(&self, time: Duration) {
        self.waited_ns.fetch_add(nanos(time), Relaxed);
    }

    pub(crate) fn stepped(&self, time: Duration) {
        self.stepped_ns.fetch_add(nanos(time), Relaxed);
    }

    pub(crate) fn first_batch(&self, time: Duration) {
        self.first_ns.store(nanos(time), Relaxed);
    }

    pub(crate) fn allocated(&self, bytes: usize, kind: MemoryKind, time: Duration) {
        self.allocations.fetch_add(1, Relaxed);
        self.allocating_ns.fetch_add(nanos(time), Relaxed);
        self.kinds.fetch_or(1 << kind as u8, Relaxed);
        let now = self.host_bytes.fetch_add(bytes, Relaxed) + bytes;
        self.host_peak.fetch_max(now, Relaxed);
    }

    pub(crate) fn freed(&self, bytes: usize) {
        self.host_bytes.fetch_sub(bytes, Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let time = |ns: &AtomicU64| Duration::from_nanos(ns.load(Relaxed));
        Stats {
            batches: self.batches.load(Relaxed),
            items: self.items.load(Relaxed),
            errors: self.errors.load(Relaxed),
            faults: self.faults.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            replaced: self.replaced.load(Relaxed),
            waited: time(&self.waited_ns),
            stepped: time(&self.stepped_ns),
            first_batch: time(&self.first_ns),
            host_bytes: self.host_bytes.load(Relaxed),
            host_bytes_peak: self.host_peak.load(Relaxed),
            allocations: self.allocations.load(Relaxed),
            allocating: time(&self.allocating_ns),
            memory: [MemoryKind::Pageable, MemoryKind::Pinned, MemoryKind::PinnedHuge]
                .into_iter()
                .find(|kind| self.kinds.load(Relaxed) & (1 << *kind as u8) != 0),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What a loader and its copies have done so far; see [`PinnedDataLoader::stats`](crate::PinnedDataLoader::stats).
///
/// `Display` prints it as a small table.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Time spent in `next()`, waiting for a batch.
    pub waited: Duration,
    /// Time between two calls of `next()`: the training step.
    pub stepped: Duration,
    /// From the last `iter()` to its first batch.
    pub first_batch: Duration,
    /// Bytes of slot memory now.
    pub host_bytes: usize,
    /// The most bytes of slot memory at any time.
    pub host_bytes_peak: usize,
    /// Blocks of slot memory ever allocated; stands still once warm.
    pub allocations: u64,
    /// The time that they took, off the training path.
    pub allocating: Duration,
    /// The kind of the slots' memory: the slowest of those ever allocated, `None` before the first allocation.
    pub memory: Option<MemoryKind>,
}

impl Stats {
    /// The share of its time that the training loop waited for data, from 0 to 1.
    pub fn wait_share(&self) -> f64 {
        let all = self.waited + self.stepped;
        if all.is_zero() { 0.0 } else { self.waited.as_secs_f64() / all.as_secs_f64() }
    }

    /// Samples a second, over steps and waits.
    pub fn items_per_second(&self) -> f64 {
        let all = self.waited + self.stepped;
        if all.is_zero() { 0.0 } else { self.items as f64 / all.as_secs_f64() }
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: usize| bytes as f64 / (1 << 20) as f64;
        writeln!(f, "batches        {} ({} samples, {} errors)", self.batches, self.items, self.errors)?;
        if self.faults > 0 {
            let Self { faults, skipped, replaced, .. } = self;
            writeln!(f, "faults         {faults} ({skipped} samples skipped, {replaced} replaced)")?;
        }
        writeln!(f, "throughput     {:.0} samples/s", self.items_per_second())?;
        writeln!(f, "step waited    {:.1} % of {:.1?}", 100.0 * self.wait_share(), self.waited + self.stepped)?;
        writeln!(f, "first batch    {:.1?}", self.first_batch)?;
        let kind = self.memory.map_or_else(|| "none".into(), |kind| kind.to_string());
        write!(f, "slot memory    {:.1} MiB, peak {:.1} MiB, {kind}", mib(self.host_bytes), mib(self.host_bytes_peak))?;
        write!(f, ", {} allocations in {:.1?}", self.allocations, self.allocating)
    }
}
