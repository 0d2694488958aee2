//! A verdict: what the training loop waits for, as the statistics show it.

use super::{
    report::{Stats, share},
    stage::StageStats,
};
use crate::vocabulary::{MemoryKind, Stage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The least share of waits that is worth a change.
pub(super) const LEAST_WAITS: f64 = 0.05;
/// The share of the time that the threads of a stage must work to be the bottleneck.
const BUSY_SHARE: f64 = 0.75;
/// A share of the waits, or of a time, that is enough to name it as the cause.
pub(super) const MOST_SHARE: f64 = 0.5;
const SLOT_WAITS: f64 = 0.3;
/// The number of first batches that a verdict leaves out. In the first steps a device compiles (4.8 s of the first step
/// of a test on an H200).
pub(crate) const EARLY_BATCHES: u64 = 8;
/// Waits that together take this long tell enough with fewer batches. A device that compiles makes the steps long, not
/// the waits.
const LONG_WAITS: Duration = Duration::from_secs(2);
/// The time that the slowest of a hundred samples must take to be a cause.
const FAST_SAMPLE: Duration = Duration::from_micros(100);
/// How many times the median the slowest of a hundred samples must take to be a cause.
const UNEVEN_TIMES: u32 = 10;

/// The number of workers that a verdict proposes where they wait for storage: at least `FEWEST_SLEEPERS`, at most
/// `SLEEPERS_A_THREAD` for each thread of the machine.
const FEWEST_SLEEPERS: usize = 16;
const SLEEPERS_A_THREAD: usize = 4;

/// Why the training loop waits, if it does, with what shows it. `Display` gives one line with the cause and the next
/// step.
///
/// Shares are from 0 to 1; `waits` is the share of the training loop's time that it spent in `next()`.
///
/// ```
/// use burn_pinned::{observe::Verdict, Stats};
///
/// let verdict = Stats::default().verdict();
/// assert!(matches!(verdict, Verdict::TooEarly { .. }));
/// assert_eq!(verdict.to_string(), "too early to say: 0 batches so far");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Verdict {
    /// Only a few batches so far, and no long waits for them: no cause can be told yet.
    #[non_exhaustive]
    TooEarly {
        /// Batches delivered.
        batches: u64,
        /// Errors delivered instead of a batch.
        errors: u64,
    },
    /// The step is the bottleneck: the loader keeps up. If the waits are more than a few, some steps are much shorter than
    /// most, and take more batches than lie ready.
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
    /// The workers are the bottleneck, and most of their time they wait for storage.
    #[non_exhaustive]
    Storage {
        /// The share of waits.
        waits: f64,
        /// How many workers there are.
        workers: usize,
        /// The share of the workers' time in which they have a sample in hand.
        busy: f64,
        /// The share of the reads' time in which workers wait for storage.
        asleep: f64,
        /// Whether the storage is a store behind a network.
        store: bool,
        /// How long the store made requests wait because it was busy, if that is the cause.
        asked_to_wait: Option<Duration>,
        /// The time of the training loop that this verdict is about.
        total: Duration,
        /// A number of workers that would hide more of the wait for storage, if there is one.
        more: Option<usize>,
        /// The bytes of the data set, if the device can keep it.
        keep: Option<usize>,
    },
    /// The workers are the bottleneck, with one stage above the others.
    #[non_exhaustive]
    Workers {
        /// The share of waits.
        waits: f64,
        /// Where the workers spend most of their time.
        stage: Stage,
        /// How many workers there are.
        workers: usize,
        /// The share of the workers' time in which they work.
        busy: f64,
        /// Whether more workers would help. `None` if that is not known: reads may wait for storage, or compute.
        more: Option<bool>,
        /// Whether the workers decode images.
        images: bool,
        /// Whether the order makes them decode the pages of Parquet files again and again.
        scattered: bool,
        /// The bytes of the data set, if the device can keep it.
        keep: Option<usize>,
    },
    /// The link to the device is the bottleneck.
    #[non_exhaustive]
    Transfer {
        /// The share of waits.
        waits: f64,
        /// Gigabytes a second.
        gb_per_s: f64,
        /// The share of their time in which the transfer threads copy.
        busy: f64,
        /// Whether they copy from ordinary memory, because page-locked memory was refused.
        pageable: bool,
        /// The bytes of the data set, if the device can keep it.
        keep: Option<usize>,
    },
    /// The engines that decode images on the device are the bottleneck.
    #[non_exhaustive]
    Decode {
        /// The share of waits.
        waits: f64,
        /// The share of their time in which the transfer threads decode.
        busy: f64,
        /// The bytes of the data set, if the device can keep it.
        keep: Option<usize>,
    },
    /// The device has no room for more batches.
    #[non_exhaustive]
    Device {
        /// The share of waits.
        waits: f64,
        /// The share of their time in which transfer threads wait for room.
        full: f64,
        /// Whether batches are kept though no step needs them any more. Else the device is the bottleneck: the loop
        /// launches steps without waiting for them, and then waits in `next()` until one is over.
        kept: bool,
    },
    /// Some samples take much longer than most.
    #[non_exhaustive]
    Uneven {
        /// The share of waits.
        waits: f64,
        /// The stage in which they do.
        stage: Stage,
        /// The time that half of the samples take at most.
        p50: Duration,
        /// The time that the slowest of a hundred take at least.
        p99: Duration,
        /// The samples of which each time is the mean; 1 for times of single samples.
        group: u64,
    },
    /// No other verdict fits. The stage that takes the most time is the one to look at first.
    #[non_exhaustive]
    Stage {
        /// The share of waits.
        waits: f64,
        /// The stage.
        stage: Stage,
        /// The share of the time of its threads that it takes; of `finish` in `next()`, the share of the waits.
        share: f64,
    },
}

impl Verdict {
    /// The stage to blame, if it is a single one.
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
    /// Returns what the training loop waits for, and what to change. The verdict is about all that the loader has done
    /// since its first eight batches, and costs the loader nothing. It comes after eight more batches or two more seconds.
    /// It comes earlier if the loop has waited for two seconds, without the wait for the first batch of an epoch. For a
    /// shorter time, see [`since`](Self::since).
    pub fn verdict(&self) -> Verdict {
        let many = |stats: &Self| stats.batches >= EARLY_BATCHES || stats.waits_long();
        let warm = self.warm_up.as_ref().map(|warm_up| self.since(warm_up));
        match &warm {
            // After the first steps, long steps tell as much as long waits.
            Some(warm) if many(warm) || warm.batches > 1 && warm.total() >= LONG_WAITS => warm.of_all(),
            None if many(self) => self.of_all(),
            _ if self.waits_long() => self.of_all(),
            _ => Verdict::TooEarly { batches: self.batches, errors: self.errors },
        }
    }

    /// Whether the loop has waited so long that a few batches tell why.
    fn waits_long(&self) -> bool {
        self.batches > 1 && self.waited.saturating_sub(self.start_waited) >= LONG_WAITS
    }

    fn of_all(&self) -> Verdict {
        // One epoch has one start, which says nothing about the rest of it.
        let start = if self.epochs > 1 { Duration::ZERO } else { self.start_waited };
        let waited = self.waited.saturating_sub(start);
        let waits = share(waited, self.total().saturating_sub(start));
        let (workers, transfer, pin) = (self.workers_busy(), self.transfer_busy(), self.pin_busy());
        let decode = self.decode_busy();
        if waits < LEAST_WAITS {
            return Verdict::Compute { waits, idle: 1.0 - workers.max(transfer + decode).max(pin) };
        }
        // Several requests wait at the same time. So a busy store is the cause only if its waits took most of the time
        // that the loop waited.
        if !self.is_kept && self.fetching() >= MOST_SHARE && share(self.asked_to_wait, waited) >= MOST_SHARE {
            return self.of_storage(waits, workers, Some(self.asked_to_wait));
        }
        if self.epochs > 1 && share(self.start_waited, self.waited) >= MOST_SHARE {
            let epochs = u32::try_from(self.epochs).unwrap_or(u32::MAX);
            return Verdict::Start { waits, first_batch: self.start_waited / epochs };
        }
        let in_next = self.is_kept || !self.on_host();
        let finish = if in_next { share(self.stages.finish.busy, waited).min(1.0) } else { 0.0 };
        if finish >= MOST_SHARE || self.is_kept {
            return Verdict::Stage { waits, stage: Stage::Finish, share: finish };
        }
        let (stage, times) = self.workers_stage();
        let busiest = workers.max(transfer).max(pin).max(decode);
        if busiest >= BUSY_SHARE {
            return match () {
                () if busiest == workers => self.of_workers(waits, stage, workers),
                () if busiest == decode => Verdict::Decode { waits, busy: decode, keep: self.keepable },
                () if busiest == transfer => {
                    let pageable = self.memory == Some(MemoryKind::Pageable);
                    let (gb_per_s, keep) = (self.gb_per_second(), self.keepable);
                    Verdict::Transfer { waits, gb_per_s, busy: transfer, pageable, keep }
                }
                () => Verdict::Stage { waits, stage: Stage::Pin, share: pin },
            };
        }
        let full = self.of_transfers(self.stages.device_wait.busy);
        if full >= MOST_SHARE {
            return Verdict::Device {
                waits,
                full,
                kept: share(self.kept_wait, self.stages.device_wait.busy) >= MOST_SHARE,
            };
        }
        let is_uneven = times.p99 > UNEVEN_TIMES * times.p50 && times.p99 > FAST_SAMPLE;
        // While the loop waits for a slow sample, a worker takes longer than the median for it.
        if is_uneven && share(times.above_median(), waited) >= MOST_SHARE {
            return Verdict::Uneven { waits, stage, p50: times.p50, p99: times.p99, group: times.group };
        }
        let slots = share(self.stages.slot_wait.busy, self.copies_had).min(1.0);
        if slots >= SLOT_WAITS {
            // A worker that waits for a slot while a batch lies ready is ahead of the step.
            let is_ahead = share(self.stages.ready.busy, self.copies_had) >= MOST_SHARE;
            return match is_ahead {
                true => Verdict::Compute { waits, idle: 1.0 - busiest },
                false => Verdict::Stage { waits, stage: Stage::SlotWait, share: slots },
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
        Verdict::Stage { waits, stage, share }
    }

    /// The workers are the bottleneck, and most of their time they are at this stage.
    fn of_workers(&self, waits: f64, stage: Stage, busy: f64) -> Verdict {
        let workers = self.workers;
        if stage == Stage::Read && self.fetching() >= MOST_SHARE {
            return self.of_storage(waits, busy, None);
        }
        let asleep = if stage == Stage::Read { self.asleep(stage) } else { Some(0.0) };
        if let Some(asleep) = asleep.filter(|share| *share >= MOST_SHARE) {
            // Twice as many workers, up to a few for each thread of the machine. A few workers that sleep cost nothing
            // on any machine.
            let more = workers.saturating_mul(2).min(SLEEPERS_A_THREAD * self.cpu_threads).max(FEWEST_SLEEPERS);
            let more = Some(more).filter(|more| *more > workers);
            let (asked_to_wait, total, keep) = (None, self.total(), self.keepable);
            return Verdict::Storage { waits, workers, busy, asleep, store: false, asked_to_wait, total, more, keep };
        }
        let room = !self.grows && workers + self.transfer_threads < self.cpu_threads;
        // While a worker waits for a file, another one can use its thread of the machine.
        let more = if room { Some(true) } else { asleep.map(|_| false) };
        let images = self.images && self.stages.decode.count == 0;
        Verdict::Workers {
            waits,
            stage,
            workers,
            busy,
            more,
            images,
            scattered: self.scattered && stage == Stage::Read,
            // Rows that are kept on the device are not read or written again, but finished in each step.
            keep: self.keepable.filter(|_| matches!(stage, Stage::Read | Stage::Collate)),
        }
    }

    /// The workers wait for a store behind a network.
    fn of_storage(&self, waits: f64, busy: f64, asked_to_wait: Option<Duration>) -> Verdict {
        let (workers, asleep, total, keep) = (self.workers, self.fetching(), self.total(), self.keepable);
        Verdict::Storage { waits, workers, busy, asleep, store: true, asked_to_wait, total, more: None, keep }
    }

    /// The share of the reads' time in which workers wait for a store behind a network.
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
