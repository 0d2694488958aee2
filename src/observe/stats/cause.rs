//! What the statistics mean: who waits for whom.

use super::{
    report::{Stats, share},
    stage::StageStats,
};
use crate::vocabulary::{MemoryKind, Stage};
use serde::{Deserialize, Serialize};
use std::time::Duration;

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

/// Workers that wait for storage: at least so many, and at most so many for each thread of the machine.
const SLEEPERS: usize = 16;
const OF_THREADS: usize = 4;

/// Why the training loop waits, if it does, with what shows it.
///
/// Shares are from 0 to 1; `waits` is the share of the training loop's time that it spent in `next()`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Cause {
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
        /// Whether the machine has threads for more workers, and the loader does not choose their number.
        room: bool,
        /// What they do while they read, where reads are to blame.
        reads: Reads,
        /// Whether the workers decode images.
        images: bool,
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
    /// The engines that decode images on the device are the bottleneck.
    Decode {
        /// The share of waits.
        waits: f64,
        /// The share of their time in which the transfer threads decode.
        busy: f64,
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
        /// The samples of which each time is the mean; 1 for times of single samples.
        group: u64,
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

/// What workers do while they read samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reads {
    /// The reads are fast, or the system does not tell.
    Unknown,
    /// They compute, or wait for a core.
    Compute,
    /// They wait for storage.
    Sleep {
        /// The share of the reads' time.
        share: f64,
        /// A number of workers that hides more of it, if there is one.
        more: Option<usize>,
    },
}

impl Stats {
    /// What the verdict is made of.
    pub(crate) fn cause(&self) -> Cause {
        let verdict = self.warm_up.as_ref().map(|warm_up| self.since(warm_up).cause());
        match verdict.unwrap_or_else(|| self.of_all()) {
            Cause::TooEarly { .. } => Cause::TooEarly { batches: self.batches, errors: self.errors },
            verdict => verdict,
        }
    }

    fn of_all(&self) -> Cause {
        if self.batches < EARLY {
            return Cause::TooEarly { batches: self.batches, errors: self.errors };
        }
        // One epoch has one start, which says nothing about the rest of it.
        let start = if self.epochs > 1 { Duration::ZERO } else { self.start_waited };
        let waited = self.waited.saturating_sub(start);
        let waits = share(waited, self.total().saturating_sub(start));
        let (workers, transfer, pin) = (self.workers_busy(), self.transfer_busy(), self.pin_busy());
        let decode = self.decode_busy();
        if waits < WAITS {
            return Cause::Compute { waits, idle: 1.0 - workers.max(transfer + decode).max(pin) };
        }
        if self.epochs > 1 && share(self.start_waited, self.waited) >= MOST {
            return Cause::Start {
                waits,
                first_batch: self.start_waited / u32::try_from(self.epochs).unwrap_or(u32::MAX),
            };
        }
        let in_finish = if self.on_host() { 0.0 } else { share(self.stages.finish.busy, waited).min(1.0) };
        if in_finish >= MOST {
            return Cause::Finish { waits, share: in_finish };
        }
        let busiest = workers.max(transfer).max(pin).max(decode);
        let (stage, times) = self.workers_stage();
        if busiest >= BUSY {
            return match () {
                () if busiest == workers => {
                    let all = self.workers;
                    let room = !self.grows && all + self.transfer_threads < self.cpu_threads;
                    let reads = if stage == Stage::Read { self.reads(all) } else { Reads::Unknown };
                    let images = self.images && self.stages.decode.count == 0;
                    Cause::Workers { waits, stage, workers: all, busy: workers, room, reads, images }
                }
                () if busiest == decode => Cause::Decode { waits, busy: decode },
                () if busiest == transfer => {
                    let pageable = self.memory == Some(MemoryKind::Pageable);
                    Cause::Transfer { waits, gb_per_s: self.gb_per_second(), busy: transfer, pageable }
                }
                () => Cause::Pin { waits, busy: pin },
            };
        }
        let in_device = self.of_transfers(self.stages.device_wait.busy);
        if in_device >= MOST {
            return match share(self.kept_wait, self.stages.device_wait.busy) {
                kept if kept >= MOST => Cause::Device { waits, share: in_device },
                _ => Cause::Ahead { waits, share: in_device },
            };
        }
        if times.p99 > UNEVEN * times.p50 && times.p99 > TINY {
            return Cause::Uneven { waits, stage, p50: times.p50, p99: times.p99, group: times.group };
        }
        let work = self.workers_time() / u32::try_from(self.batches.max(1)).unwrap_or(u32::MAX);
        if work < TINY {
            return Cause::Overhead { waits, work };
        }
        let in_slots = share(self.stages.slot_wait.busy, self.copies_had);
        if in_slots >= MANY {
            return Cause::Slots { waits, share: in_slots.min(1.0), slots: self.slots };
        }
        Cause::Mixed { waits, workers, transfer }
    }

    fn pin_busy(&self) -> f64 {
        if self.on_host() { 0.0 } else { share(self.stages.pin.busy, self.copies_had).min(1.0) }
    }

    /// Returns what `all` workers do while they read.
    fn reads(&self, all: usize) -> Reads {
        match self.asleep(Stage::Read) {
            None => Reads::Unknown,
            Some(share) if share >= MOST => {
                // Twice as many, up to a few for each thread of the machine. A few sleepers cost nothing on any machine.
                let more = all.saturating_mul(2).min(OF_THREADS * self.cpu_threads).max(SLEEPERS);
                Reads::Sleep { share, more: Some(more).filter(|more| *more > all) }
            }
            Some(_) => Reads::Compute,
        }
    }

    /// Returns the stage that takes most of the workers' time.
    fn workers_stage(&self) -> (Stage, &StageStats) {
        let host: &[Stage] = if self.on_host() { &[Stage::Pin, Stage::Finish] } else { &[] };
        let all = Stage::OF_SAMPLES.into_iter().chain([Stage::Batcher]).chain(host.iter().copied());
        let busiest = all.max_by_key(|stage| self.stages.of(*stage).busy).unwrap_or(Stage::Read);
        (busiest, self.stages.of(busiest))
    }
}
