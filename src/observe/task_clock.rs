//! The clock of a worker's task: how long reading, augmenting and writing samples take.
//!
//! Reading the clock takes about 25 ns, and a sample of some hundred bytes takes 50 ns. Such samples are timed in groups, one group in
//! [`GROUPS_PER_TIMED`], and the task's time is split in the measured proportion. Samples that take [`SLOW_SAMPLE`] or longer are timed one
//! by one, and so are the next [`TIMED_AFTER_SLOW`]: slow samples may be rare among fast ones.
//!
//! If reads take [`LONG_READ`] or longer, each task also notes how long the worker was awake. A worker that sleeps waits for storage.

mod thread_time;

use super::{counters::Counters, span::StageGuard};
use crate::{
    observe::stats::{TIMED, nanos},
    vocabulary::{BatchKey, Stage},
};
use std::{
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

/// One in this number of groups of fast samples is timed.
const GROUPS_PER_TIMED: u32 = 32;
/// Samples that take this time or longer are timed one by one, and so are the `TIMED_AFTER_SLOW` samples after them.
const SLOW_SAMPLE: Duration = Duration::from_micros(20);
const TIMED_AFTER_SLOW: usize = 1024;
/// If reads take this time or longer, tasks measure whether the worker sleeps.
const LONG_READ: Duration = Duration::from_millis(1);

/// Returns how long this thread has waited for bytes from a remote store since the last call. Such a wait does not count as work, and is no
/// reason for more workers.
fn take_fetching() -> Duration {
    #[cfg(feature = "remote")]
    return burn_shards::for_loader::take_fetching();
    #[cfg(not(feature = "remote"))]
    Duration::ZERO
}

/// Which samples are timed now.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    Nothing,
    /// The group as a whole.
    Group,
    Sample,
}

/// Times one task.
pub(crate) struct TaskClock<'a> {
    counters: &'a Counters,
    worker: usize,
    batch: BatchKey,
    started: Instant,
    lap: Instant,
    detail: Detail,
    groups: u32,
    /// How many samples to time one by one, from this task on.
    slow: usize,
    /// Whether reads are slow.
    long: bool,
    /// How long the parts of the timed samples took, in ns. `None` for parts that did not run.
    timed: [Option<u64>; Stage::OF_SAMPLES.len()],
    /// The time that the rows took, once they are done.
    worked: Duration,
    /// The span for tracing tools, until the rows are done.
    entered: Option<StageGuard>,
}

impl<'a> TaskClock<'a> {
    pub(crate) fn start(counters: &'a Counters, worker: usize, batch: BatchKey) -> Self {
        let started = Instant::now();
        let (slow, long) = (counters.timed_samples.load(Relaxed), counters.has_long_reads.load(Relaxed));
        if long {
            thread_time::follow();
        }
        take_fetching(); // forgets the waits outside of a task
        Self {
            counters,
            worker,
            batch,
            started,
            lap: started,
            detail: Detail::Nothing,
            groups: 0,
            slow,
            long,
            timed: [None; Stage::OF_SAMPLES.len()],
            worked: Duration::ZERO,
            entered: Some(StageGuard::new(Stage::Fill, batch)),
        }
    }

    pub(crate) fn worker(&self) -> usize {
        self.worker
    }

    /// The time since the task began. In a model it is zero.
    pub(crate) fn elapsed(&self) -> Duration {
        if cfg!(burn_pinned_loom) { Duration::ZERO } else { self.started.elapsed() }
    }

    /// The time that the rows took, without the waits for a remote store.
    pub(crate) fn worked(&self) -> Duration {
        self.worked
    }

    /// Notes that a group of samples begins. With `parts`, samples are read and augmented, and these two can be
    /// distinguished only by timing each sample.
    pub(crate) fn group(&mut self, parts: bool) {
        let timed = TIMED && (self.slow > 0 || self.groups.is_multiple_of(GROUPS_PER_TIMED));
        self.groups = self.groups.wrapping_add(1);
        self.detail = match timed {
            false => Detail::Nothing,
            true if self.slow > 0 || parts => Detail::Sample,
            true => Detail::Group,
        };
        if timed {
            self.lap = Instant::now();
        }
    }

    /// Notes that a part of one sample is done.
    #[inline]
    pub(crate) fn sample(&mut self, part: Stage) {
        if self.detail == Detail::Sample {
            self.note(part, 1);
        }
    }

    /// Notes that a part of `count` samples, the whole group, is done.
    #[inline]
    pub(crate) fn samples(&mut self, part: Stage, count: usize) {
        if self.detail == Detail::Group && count > 0 {
            self.note(part, count as u64);
        }
    }

    fn note(&mut self, part: Stage, count: u64) {
        let now = Instant::now();
        let ns = nanos(now - self.lap);
        self.lap = now;
        if let Some(sum) = self.timed.get_mut(part as usize) {
            *sum = Some(sum.unwrap_or(0) + ns);
        }
        self.counters.sample(part, self.worker).add_mean(ns, count);
    }

    /// Notes that the rows are done.
    pub(crate) fn end(&mut self, rows: usize) {
        self.entered = None;
        let now = Instant::now();
        let time = now - self.started;
        let fetched = take_fetching().min(time);
        self.worked = time - fetched;
        if !TIMED {
            return;
        }
        if !fetched.is_zero() {
            self.counters.took(Stage::Fetch, self.batch, now - fetched, now);
        }
        let timed: u64 = self.timed.iter().flatten().sum();
        let mut reads = 0;
        for (part, ns) in Stage::OF_SAMPLES.into_iter().zip(self.timed) {
            let Some(ns) = ns else { continue };
            let share = u128::from(nanos(time)) * u128::from(ns) / u128::from(timed.max(1));
            self.counters.sample(part, self.worker).add_total(rows as u64, share as u64);
            if part == Stage::Read {
                reads = share as u64;
            }
        }
        if !self.long {
            thread_time::leave();
        } else if let Some(awake) = thread_time::look() {
            self.counters.looked(self.worked, awake);
        }
        let count = u32::try_from(rows).unwrap_or(u32::MAX);
        let slow = if time >= SLOW_SAMPLE * count { TIMED_AFTER_SLOW } else { self.slow.saturating_sub(rows) };
        let long = Duration::from_nanos(reads) >= LONG_READ * count;
        if slow != self.slow {
            self.counters.timed_samples.store(slow, Relaxed);
        }
        if long != self.long {
            self.counters.has_long_reads.store(long, Relaxed);
        }
        self.counters.took(Stage::Fill, self.batch, self.started, now);
    }
}
