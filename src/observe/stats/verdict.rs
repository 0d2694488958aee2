//! What the statistics mean: who waits for whom, and what to change.

use super::{
    report::{Stats, share},
    stage::StageStats,
};
use crate::vocabulary::{MemoryKind, Stage};
use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

/// Waits below this share of the step's time are not worth a change.
const WAITS: f64 = 0.05;
/// A stage whose threads work this share of the time is the one that the others wait for.
const BUSY: f64 = 0.75;
/// A share of the waits, or of the time, that is enough to name a cause.
const MOST: f64 = 0.5;
const MANY: f64 = 0.3;
/// The number of first batches that no verdict is about. In the first steps a device compiles (4.8 s of the first step
/// of a test on an H200).
pub(crate) const EARLY: u64 = 8;
/// Batches of less work cost more to hand on than to make.
const TINY: Duration = Duration::from_micros(100);
/// Samples differ much if the slowest of a hundred takes this many times the median.
const UNEVEN: u32 = 10;

/// Why the training loop waits, if it does. `Display` gives one line with the cause and what to do next.
///
/// Shares are from 0 to 1. `waits` is the share of the training loop's time that it spent in `next()`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Verdict {
    /// Only a few batches so far: no cause can be told yet.
    TooEarly {
        /// Batches delivered.
        batches: u64,
        /// Errors delivered instead of a batch.
        errors: u64,
    },
    /// The step is the bottleneck: the loader keeps up.
    Compute {
        /// The share of waits.
        waits: f64,
        /// The share of the time in which the loader's busiest threads had nothing to do.
        idle: f64,
    },
    /// The device is the bottleneck. The loop launches steps without waiting for them, and so runs ahead of the device.
    /// It then waits in `next()` until a step is over and releases its batch.
    Ahead {
        /// The share of waits.
        waits: f64,
        /// The share of their time in which transfer threads wait for such a release.
        share: f64,
    },
    /// Most waits are for the first batch of an epoch.
    Start {
        /// The share of waits.
        waits: f64,
        /// The mean of those waits.
        first_batch: Duration,
    },
    /// The workers are the bottleneck, with one stage above the others.
    Workers {
        /// The share of waits.
        waits: f64,
        /// Where the workers spend most of their time.
        stage: Stage,
        /// How many workers there are.
        workers: usize,
        /// The share of the workers' time in which they work.
        busy: f64,
        /// Whether the machine has threads for more workers.
        room: bool,
    },
    /// The pin thread is the bottleneck: packing a batcher's tensors, or closing the gaps of padded rows.
    Pin {
        /// The share of waits.
        waits: f64,
        /// The share of its time in which it works.
        busy: f64,
    },
    /// The link to the device is the bottleneck.
    Transfer {
        /// The share of waits.
        waits: f64,
        /// Gigabytes a second.
        gb_per_s: f64,
        /// The share of their time in which the transfer threads copy.
        busy: f64,
        /// Whether they copy from ordinary memory, because page-locked memory was refused.
        pageable: bool,
    },
    /// `Collate::finish`, which runs in `next()`, is the bottleneck.
    Finish {
        /// The share of waits.
        waits: f64,
        /// The share of the waits that `finish` takes.
        share: f64,
    },
    /// Delivered batches stay in device memory though no step needs them any more, so no more batches may be sent.
    Device {
        /// The share of waits.
        waits: f64,
        /// The share of their time in which transfer threads wait for room.
        share: f64,
    },
    /// Workers wait for slots.
    Slots {
        /// The share of waits.
        waits: f64,
        /// The share of the time in which no slot was free.
        share: f64,
        /// How many slots there are.
        slots: usize,
    },
    /// Batches are so small that handing them on is most of the work.
    Overhead {
        /// The share of waits.
        waits: f64,
        /// How long the workers work for a batch.
        work: Duration,
    },
    /// Some samples take much longer than most.
    Uneven {
        /// The share of waits.
        waits: f64,
        /// The stage in which they do.
        stage: Stage,
        /// The time that half of the samples take at most.
        p50: Duration,
        /// The time that the slowest of a hundred take at least.
        p99: Duration,
    },
    /// No stage stands out.
    Mixed {
        /// The share of waits.
        waits: f64,
        /// The share of the workers' time in which they work.
        workers: f64,
        /// The share of the transfer threads' time in which they copy.
        transfer: f64,
    },
}

impl Stats {
    /// Returns what the training loop waits for, and what to change. The verdict is about all that the loader has done
    /// since its first few batches, and costs the loader nothing. For a shorter time, see [`since`](Self::since).
    pub fn verdict(&self) -> Verdict {
        let verdict = self.warm_up.as_ref().map(|warm_up| self.since(warm_up).verdict());
        match verdict.unwrap_or_else(|| self.of_all()) {
            Verdict::TooEarly { .. } => Verdict::TooEarly { batches: self.batches, errors: self.errors },
            verdict => verdict,
        }
    }

    fn of_all(&self) -> Verdict {
        if self.batches < EARLY {
            return Verdict::TooEarly { batches: self.batches, errors: self.errors };
        }
        // One epoch has one start, which says nothing about the rest of it.
        let start = if self.epochs > 1 { Duration::ZERO } else { self.start_waited };
        let waited = self.waited.saturating_sub(start);
        let waits = share(waited, self.total().saturating_sub(start));
        let (workers, transfer, pin) = (self.workers_busy(), self.transfer_busy(), self.pin_busy());
        if waits < WAITS {
            return Verdict::Compute { waits, idle: 1.0 - workers.max(transfer).max(pin) };
        }
        if self.epochs > 1 && share(self.start_waited, self.waited) >= MOST {
            return Verdict::Start {
                waits,
                first_batch: self.start_waited / u32::try_from(self.epochs).unwrap_or(u32::MAX),
            };
        }
        let in_finish = if self.on_host() { 0.0 } else { share(self.stages.finish.busy, waited).min(1.0) };
        if in_finish >= MOST {
            return Verdict::Finish { waits, share: in_finish };
        }
        let busiest = workers.max(transfer).max(pin);
        let (stage, times) = self.workers_stage();
        if busiest >= BUSY {
            return match () {
                () if busiest == workers => {
                    let room = self.workers + self.transfer_threads < self.cpu_threads;
                    Verdict::Workers { waits, stage, workers: self.workers, busy: workers, room }
                }
                () if busiest == transfer => {
                    let pageable = self.memory == Some(MemoryKind::Pageable);
                    Verdict::Transfer { waits, gb_per_s: self.gb_per_second(), busy: transfer, pageable }
                }
                () => Verdict::Pin { waits, busy: pin },
            };
        }
        let in_device = self.of_transfers(self.stages.device_wait.busy);
        if in_device >= MOST {
            return match share(self.kept_wait, self.stages.device_wait.busy) {
                kept if kept >= MOST => Verdict::Device { waits, share: in_device },
                _ => Verdict::Ahead { waits, share: in_device },
            };
        }
        if times.p99 > UNEVEN * times.p50 && times.p99 > TINY {
            return Verdict::Uneven { waits, stage, p50: times.p50, p99: times.p99 };
        }
        let work = self.workers_time() / u32::try_from(self.batches.max(1)).unwrap_or(u32::MAX);
        if work < TINY {
            return Verdict::Overhead { waits, work };
        }
        let in_slots = share(self.stages.slot_wait.busy, self.copies_had);
        if in_slots >= MANY {
            return Verdict::Slots { waits, share: in_slots.min(1.0), slots: self.slots };
        }
        Verdict::Mixed { waits, workers, transfer }
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

/// Returns what users call a stage, and what makes it cheaper.
fn words(stage: Stage) -> (&'static str, &'static str) {
    match stage {
        Stage::Read => ("read (`Dataset::get`)", "a cheaper decode, or data that is decoded once"),
        Stage::Augment => ("augment", "cheaper augmentation, or augmentation on the device in `finish`"),
        Stage::Collate => ("`Collate::write`", "a cheaper one, or work moved to the device in `finish`"),
        Stage::Batcher => ("the batcher", "a cheaper one, or work moved to the device"),
        Stage::Pin => ("pin (packing the batch)", "fields of one size"),
        Stage::Finish => ("finish", "less work in `finish`"),
        stage => (stage.name(), "less work a batch"),
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let waits = |share: f64| format!("the step waits {} of the time", percent(share));
        match *self {
            Self::TooEarly { batches, errors: 0 } => write!(f, "too early to say: {batches} batches so far"),
            Self::TooEarly { batches, errors } => {
                write!(f, "too early to say: {batches} batches so far, and {errors} errors instead of one")
            }
            Self::Compute { waits, idle } => {
                let (waits, idle) = (percent(waits), percent(idle));
                write!(f, "compute-bound: the loader is idle {idle}, the step waits {waits} of the time; nothing to do")
            }
            Self::Ahead { waits: share, share: part } => {
                let (waits, part) = (waits(share), percent(part));
                write!(
                    f,
                    "compute-bound: {waits}, but for the device, which its loop runs ahead of: transfers wait {part} of it "
                )?;
                f.write_str("for steps to be over; nothing to do")
            }
            Self::Start { waits: share, first_batch } => {
                let waits = waits(share);
                write!(f, "{waits}, mostly {first_batch:.1?} for the first batch of each epoch: ")?;
                f.write_str("fewer and longer epochs, or smaller batches")
            }
            Self::Workers { waits: share, stage, workers, busy, room } => {
                let ((name, cheaper), waits, busy) = (words(stage), waits(share), percent(busy));
                let s = if workers == 1 { "" } else { "s" };
                write!(f, "{waits} for {name} ({workers} worker{s} busy {busy}): ")?;
                match (room, stage) {
                    (true, _) => write!(f, "more workers, or {cheaper}"),
                    // While a worker waits for a file, another one can use its thread of the machine.
                    (false, Stage::Read) => write!(f, "{cheaper}; more workers only where they wait for storage"),
                    (false, _) => write!(f, "{cheaper}; more workers would share the same cores"),
                }
            }
            Self::Pin { waits: share, busy } => {
                let (waits, busy) = (waits(share), percent(busy));
                write!(
                    f,
                    "{waits} for the pin thread, busy {busy}: a `Collate` instead of a batcher, or fields of one size"
                )
            }
            Self::Transfer { waits: share, gb_per_s, busy, pageable } => {
                let (waits, busy) = (waits(share), percent(busy));
                write!(f, "transfer-bound: {waits}, the transfer threads copy {busy} of it at {gb_per_s:.1} GB/s")?;
                if pageable {
                    f.write_str(" from ordinary memory: find out why none was page-locked (it is logged), or ")?;
                } else {
                    f.write_str(": ")?;
                }
                f.write_str("send fewer bytes, such as u8 instead of f32")
            }
            Self::Finish { waits: share, share: part } => {
                let (waits, part) = (waits(share), percent(part));
                write!(
                    f,
                    "{waits}, {part} of that in `finish`, which runs in `next()`: less work or fewer kernels there"
                )
            }
            Self::Device { waits: share, share: part } => {
                let (waits, part) = (waits(share), percent(part));
                write!(f, "{waits}, and transfers wait {part} of it for batches to leave device memory: ")?;
                f.write_str("drop batches after their step, or a larger `prefetch`")
            }
            Self::Slots { waits: share, share: part, slots } => {
                let (waits, part) = (waits(share), percent(part));
                let s = if slots == 1 { "" } else { "s" };
                write!(f, "slot-bound: {waits}, and the workers wait {part} of it for one of {slots} slot{s}: ")?;
                f.write_str("a larger `prefetch` or `pinned_limit`")
            }
            Self::Overhead { waits: share, work } => {
                let waits = waits(share);
                write!(f, "{waits}, though a batch is only {work:.1?} of work: a larger `batch_size`")
            }
            Self::Uneven { waits: share, stage, p50, p99 } => {
                let ((name, _), waits) = (words(stage), waits(share));
                write!(f, "{waits} for slow samples: one in 100 takes {p99:.1?} in {name}, most {p50:.1?}: ")?;
                f.write_str("a larger `prefetch`, or a look at those samples")
            }
            Self::Mixed { waits: share, workers, transfer } => {
                let (waits, workers, transfer) = (waits(share), percent(workers), percent(transfer));
                write!(f, "{waits}, no stage stands out (workers busy {workers}, transfers {transfer}): ")?;
                f.write_str("a larger `prefetch` evens out what varies")
            }
        }
    }
}

#[cfg(test)]
mod tests;
