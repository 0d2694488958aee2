//! Verdicts: what the training loop waits for, according to the statistics.

use super::{
    report::{Stats, share},
    stage::StageStats,
};
use crate::vocabulary::{MemoryKind, Stage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The least share of waits that is worth a change.
pub(super) const LEAST_WAITS: f64 = 0.05;
/// The threads of a stage are the bottleneck if they work at least this share of the time.
const BUSY_SHARE: f64 = 0.75;
/// At least this share of the waits, or of a time, makes something the cause.
pub(super) const MOST_SHARE: f64 = 0.5;
const SLOT_WAITS: f64 = 0.3;
/// The number of first batches that a verdict ignores. In the first steps a device compiles kernels (4.8 s in the first
/// step of a test on an H200).
pub(crate) const EARLY_BATCHES: u64 = 8;
/// If the waits add up to this time, fewer batches are enough for a verdict. A device that compiles makes the steps
/// long, not the waits.
const LONG_WAITS: Duration = Duration::from_secs(2);
/// Slow samples are a cause only if the 99th percentile is at least this long.
const FAST_SAMPLE: Duration = Duration::from_micros(100);
/// Slow samples are a cause only if the 99th percentile is at least this many times the median.
const UNEVEN_TIMES: u32 = 10;

/// The number of workers that a verdict proposes if they wait for storage: at least `FEWEST_SLEEPERS`, at most
/// `SLEEPERS_A_THREAD` for each CPU thread.
const FEWEST_SLEEPERS: usize = 16;
const SLEEPERS_A_THREAD: usize = 4;

/// What the training loop waits for, and what else you should know. `Display` gives a line with the cause and what to
/// change, and a line for each note.
///
/// ```
/// use burn_pinned::{Stats, observe::Cause};
///
/// let verdict = Stats::default().verdict();
/// assert!(matches!(verdict.cause, Cause::TooEarly { .. }) && verdict.notes.is_empty());
/// assert_eq!(verdict.to_string(), "too early to say: 0 batches so far");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Verdict {
    /// Why the training loop waits, if it does.
    pub cause: Cause,
    /// The loader's warnings, and the samples that are not in its batches.
    pub notes: Vec<String>,
}

/// Why the training loop waits, if it does, with the evidence. `Display` gives one line with the cause and what to do
/// next.
///
/// Shares are from 0 to 1. `waits` is the share of the training loop's time that it spent in `next()`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Cause {
    /// There were too few batches, without long waits, to find a cause.
    #[non_exhaustive]
    TooEarly {
        /// Batches delivered.
        batches: u64,
        /// Errors delivered instead of a batch.
        errors: u64,
    },
    /// The step is the bottleneck: the loader keeps up. If the loop still waits a noticeable share of the time, some steps are much shorter
    /// than most, and use up the ready batches.
    #[non_exhaustive]
    Compute {
        /// The share of waits.
        waits: f64,
        /// The share of the time in which the loader's busiest threads had nothing to do.
        idle: f64,
    },
    /// Most waits are for the first batch of an epoch.
    #[non_exhaustive]
    Start {
        /// The share of waits.
        waits: f64,
        /// The mean of those waits.
        first_batch: Duration,
    },
    /// The workers are the bottleneck, and they wait for storage most of their time.
    #[non_exhaustive]
    Storage {
        /// The share of waits.
        waits: f64,
        /// How many workers there are.
        workers: usize,
        /// The share of the workers' time in which they process a sample.
        busy: f64,
        /// The share of the reads' time in which workers wait for storage.
        asleep: f64,
        /// Whether the storage is a remote store.
        store: bool,
        /// How long the busy store made requests wait, if that is the cause.
        asked_to_wait: Option<Duration>,
        /// The time of the training loop that this verdict covers.
        total: Duration,
        /// A number of workers that would hide more of the wait for storage, if there is one.
        more: Option<usize>,
        /// The bytes of the data set, if the device can keep it.
        keep: Option<usize>,
    },
    /// The workers are the bottleneck, and one stage dominates.
    #[non_exhaustive]
    Workers {
        /// The share of waits.
        waits: f64,
        /// The stage in which the workers spend most of their time.
        stage: Stage,
        /// How many workers there are.
        workers: usize,
        /// The share of the workers' time in which they work.
        busy: f64,
        /// Whether more workers would help. `None` if it is not known whether reads wait for storage or compute.
        more: Option<bool>,
        /// Whether the workers decode images.
        images: bool,
        /// Whether the order makes the workers decode each page of Parquet files many times.
        scattered: bool,
        /// The bytes of the data set, if the device can keep it.
        keep: Option<usize>,
    },
    /// The link to the device is the bottleneck.
    #[non_exhaustive]
    Transfer {
        /// The share of waits.
        waits: f64,
        /// Gigabytes (10^9 bytes) per second.
        gb_per_s: f64,
        /// The share of the transfer threads' time in which they copy.
        busy: f64,
        /// Whether they copy from ordinary memory because page-locked memory was refused.
        pageable: bool,
        /// The bytes of the data set, if the device can keep it.
        keep: Option<usize>,
    },
    /// The engines of the device that decode images are the bottleneck.
    #[non_exhaustive]
    Decode {
        /// The share of waits.
        waits: f64,
        /// The share of the transfer threads' time in which they decode.
        busy: f64,
        /// The bytes of the data set, if the device can keep it.
        keep: Option<usize>,
    },
    /// No more batches may be in device memory.
    #[non_exhaustive]
    Device {
        /// The share of waits.
        waits: f64,
        /// The share of the transfer threads' time in which they wait until another batch may be sent.
        full: f64,
        /// Whether batches are kept although no step needs them any more. If false, the device is the bottleneck: the
        /// loop launches steps without waiting for them, and then waits in `next()` until one ends.
        kept: bool,
    },
    /// Some samples take much longer than most.
    #[non_exhaustive]
    Uneven {
        /// The share of waits.
        waits: f64,
        /// The stage in which they take longer.
        stage: Stage,
        /// The median time of a sample.
        p50: Duration,
        /// The 99th percentile of the times.
        p99: Duration,
        /// Each time is the mean of up to this many samples; 1 for times of single samples.
        group: u64,
    },
    /// No other verdict fits. Look first at the stage that takes the most time.
    #[non_exhaustive]
    Stage {
        /// The share of waits.
        waits: f64,
        /// The stage.
        stage: Stage,
        /// The share of its threads' time that the stage takes; for `finish` in `next()`, the share of the waits.
        share: f64,
    },
}

impl Cause {
    /// The stage to blame, if there is a single one.
    pub fn stage(&self) -> Option<Stage> {
        match *self {
            Self::Storage { .. } => Some(Stage::Read),
            Self::Transfer { .. } => Some(Stage::Transfer),
            Self::Decode { .. } => Some(Stage::Decode),
            Self::Workers { stage, .. } | Self::Uneven { stage, .. } | Self::Stage { stage, .. } => Some(stage),
            Self::TooEarly { .. } | Self::Compute { .. } | Self::Start { .. } | Self::Device { .. } => None,
        }
    }
}

impl Stats {
    /// Returns what the training loop waits for, and what to change. The verdict covers everything after the first eight batches, and does
    /// not slow the loader down. It is available after eight more batches or two more seconds. It is available earlier if the loop has
    /// waited for two seconds, not counting the wait for the first batch of an epoch. For a shorter period, see [`since`](Self::since).
    pub fn verdict(&self) -> Verdict {
        Verdict { cause: self.cause(), notes: self.notes() }
    }

    fn cause(&self) -> Cause {
        let many = |stats: &Self| stats.batches >= EARLY_BATCHES || stats.waits_long();
        let warm = self.warm_up.as_ref().map(|warm_up| self.since(warm_up));
        match &warm {
            // After the first steps, long steps are as informative as long waits.
            Some(warm) if many(warm) || warm.batches > 1 && warm.total() >= LONG_WAITS => warm.of_all(),
            None if many(self) => self.of_all(),
            _ if self.waits_long() => self.of_all(),
            _ => Cause::TooEarly { batches: self.batches, errors: self.errors },
        }
    }

    /// The warnings, and what the figures say besides the cause.
    fn notes(&self) -> Vec<String> {
        let mut notes = self.warnings.clone();
        let samples = [(self.skipped, "bad, and skipped"), (self.replaced, "bad, and replaced by others")];
        for (count, what) in samples.into_iter().filter(|(count, _)| *count > 0) {
            notes.push(format!("{count} sample{} {what}", if count == 1 { " is" } else { "s are" }));
        }
        notes
    }

    /// Whether the loop has waited long enough that few batches are sufficient for a verdict.
    fn waits_long(&self) -> bool {
        self.batches > 1 && self.waited.saturating_sub(self.start_waited) >= LONG_WAITS
    }

    fn of_all(&self) -> Cause {
        // One epoch has one start, which says nothing about the rest of the epoch.
        let start = if self.epochs > 1 { Duration::ZERO } else { self.start_waited };
        let waited = self.waited.saturating_sub(start);
        let waits = share(waited, self.total().saturating_sub(start));
        let (workers, transfer, pin) = (self.workers_busy(), self.transfer_busy(), self.pin_busy());
        let decode = self.decode_busy();
        if waits < LEAST_WAITS {
            return Cause::Compute { waits, idle: 1.0 - workers.max(transfer + decode).max(pin) };
        }
        // Several requests wait at the same time. So a busy store is the cause only if its waits took most of the time
        // that the loop waited.
        if !self.is_kept && self.fetching() >= MOST_SHARE && share(self.asked_to_wait, waited) >= MOST_SHARE {
            return self.of_storage(waits, workers, Some(self.asked_to_wait));
        }
        if self.epochs > 1 && share(self.start_waited, self.waited) >= MOST_SHARE {
            let epochs = u32::try_from(self.epochs).unwrap_or(u32::MAX);
            return Cause::Start { waits, first_batch: self.start_waited / epochs };
        }
        let in_next = self.is_kept || !self.on_host();
        let finish = if in_next { share(self.stages.finish.busy, waited).min(1.0) } else { 0.0 };
        if finish >= MOST_SHARE || self.is_kept {
            return Cause::Stage { waits, stage: Stage::Finish, share: finish };
        }
        let (stage, times) = self.workers_stage();
        let busiest = workers.max(transfer).max(pin).max(decode);
        if busiest >= BUSY_SHARE {
            return match () {
                () if busiest == workers => self.of_workers(waits, stage, workers),
                () if busiest == decode => Cause::Decode { waits, busy: decode, keep: self.keepable },
                () if busiest == transfer => {
                    let pageable = self.memory == Some(MemoryKind::Pageable);
                    let (gb_per_s, keep) = (self.gb_per_second(), self.keepable);
                    Cause::Transfer { waits, gb_per_s, busy: transfer, pageable, keep }
                }
                () => Cause::Stage { waits, stage: Stage::Pin, share: pin },
            };
        }
        let streamed = share(self.stages.stream.busy, waited).min(1.0);
        if streamed >= MOST_SHARE {
            return Cause::Stage { waits, stage: Stage::Stream, share: streamed };
        }
        let full = self.of_transfers(self.stages.device_wait.busy);
        if full >= MOST_SHARE {
            return Cause::Device {
                waits,
                full,
                kept: share(self.kept_wait, self.stages.device_wait.busy) >= MOST_SHARE,
            };
        }
        let is_uneven = times.p99 > UNEVEN_TIMES * times.p50 && times.p99 > FAST_SAMPLE;
        // While the loop waits for a slow sample, a worker takes longer than the median for it.
        if is_uneven && share(times.above_median(), waited) >= MOST_SHARE {
            return Cause::Uneven { waits, stage, p50: times.p50, p99: times.p99, group: times.group };
        }
        let slots = share(self.stages.slot_wait.busy, self.copies_had).min(1.0);
        if slots >= SLOT_WAITS {
            // A worker that waits for a slot while a batch lies ready is ahead of the step.
            let is_ahead = share(self.stages.ready.busy, self.copies_had) >= MOST_SHARE;
            return match is_ahead {
                true => Cause::Compute { waits, idle: 1.0 - busiest },
                false => Cause::Stage { waits, stage: Stage::SlotWait, share: slots },
            };
        }
        let all = [
            (stage, share(times.busy, self.workers_had)),
            (Stage::Pin, pin),
            (Stage::Decode, decode),
            (Stage::Transfer, transfer),
            (Stage::Finish, finish),
        ];
        let (stage, share) = all.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap_or((stage, 0.0));
        Cause::Stage { waits, stage, share }
    }

    /// The workers are the bottleneck, and spend most of their time in this stage.
    fn of_workers(&self, waits: f64, stage: Stage, busy: f64) -> Cause {
        let workers = self.workers;
        if stage == Stage::Read && self.fetching() >= MOST_SHARE {
            return self.of_storage(waits, busy, None);
        }
        let asleep = if stage == Stage::Read { self.asleep(stage) } else { Some(0.0) };
        if let Some(asleep) = asleep.filter(|share| *share >= MOST_SHARE) {
            // Twice as many workers, up to `SLEEPERS_A_THREAD` per CPU thread. Up to `FEWEST_SLEEPERS` sleeping workers
            // are cheap on any machine.
            let more = workers.saturating_mul(2).min(SLEEPERS_A_THREAD * self.cpu_threads).max(FEWEST_SLEEPERS);
            let more = Some(more).filter(|more| *more > workers);
            let (asked_to_wait, total, keep) = (None, self.total(), self.keepable);
            return Cause::Storage { waits, workers, busy, asleep, store: false, asked_to_wait, total, more, keep };
        }
        let room = !self.grows && workers + self.transfer_threads < self.cpu_threads;
        // While a worker waits for a file, another one can use its CPU thread.
        let more = if room { Some(true) } else { asleep.map(|_| false) };
        let images = self.images && self.stages.decode.count == 0;
        Cause::Workers {
            waits,
            stage,
            workers,
            busy,
            more,
            images,
            scattered: self.scattered && stage == Stage::Read,
            // Rows that are kept on the device are not read or written again, but each batch is still finished.
            keep: self.keepable.filter(|_| matches!(stage, Stage::Read | Stage::Collate)),
        }
    }

    /// The workers wait for a remote store.
    fn of_storage(&self, waits: f64, busy: f64, asked_to_wait: Option<Duration>) -> Cause {
        let (workers, asleep, total, keep) = (self.workers, self.fetching(), self.total(), self.keepable);
        Cause::Storage { waits, workers, busy, asleep, store: true, asked_to_wait, total, more: None, keep }
    }

    /// The share of the reads' time in which workers wait for a remote store.
    fn fetching(&self) -> f64 {
        share(self.stages.fetch.busy, self.stages.read.busy).min(1.0)
    }

    fn pin_busy(&self) -> f64 {
        if self.on_host() { 0.0 } else { share(self.stages.pin.busy, self.copies_had).min(1.0) }
    }

    /// Returns the stage that takes most of the workers' time.
    fn workers_stage(&self) -> (Stage, &StageStats) {
        let host: &[Stage] = if self.on_host() { &[Stage::Pin, Stage::Finish] } else { &[] };
        let all = Stage::OF_SAMPLES.into_iter().chain([Stage::Batcher]).chain(host.iter().copied());
        let busiest = all.max_by_key(|stage| self.stages.of(*stage).busy).unwrap_or(Stage::Read);
        (busiest, self.stages.of(busiest))
    }
}

#[cfg(test)]
mod tests;
