//! A verdict in words: the cause in one line, and what to change.

use super::{
    cause::{Cause, Reads},
    report::Stats,
};
use crate::vocabulary::Stage;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why the training loop waits, if it does. `Display` gives one line with the cause and the next step.
///
/// ```
/// use burn_pinned::{observe::VerdictKind, Stats};
///
/// let verdict = Stats::default().verdict();
/// assert_eq!(verdict.kind(), VerdictKind::TooEarly);
/// assert_eq!(verdict.to_string(), "too early to say: 0 batches so far");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Verdict(Cause);

/// What the bottleneck is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum VerdictKind {
    /// Only a few batches so far: no cause can be told yet.
    TooEarly,
    /// The step is the bottleneck: the loader keeps up.
    Compute,
    /// The device is the bottleneck. The loop launches steps without waiting for them, and so runs ahead of the device.
    /// It then waits in `next()` until a step is over and releases its batch.
    Ahead,
    /// Most waits are for the first batch of an epoch.
    Start,
    /// The workers are the bottleneck, with one stage above the others.
    Workers,
    /// The pin thread is the bottleneck: packing a batcher's tensors, or closing the gaps of padded rows.
    Pin,
    /// The link to the device is the bottleneck.
    Transfer,
    /// The engines that decode images on the device are the bottleneck.
    Decode,
    /// `Collate::finish`, which runs in `next()`, is the bottleneck.
    Finish,
    /// Delivered batches stay in device memory though no step needs them any more, so no more batches may be sent.
    Device,
    /// Workers wait for slots.
    Slots,
    /// Batches are so small that handing them on is most of the work.
    Overhead,
    /// Some samples take much longer than most.
    Uneven,
    /// No stage stands out.
    Mixed,
}

impl Stats {
    /// Returns what the training loop waits for, and what to change. The verdict is about all that the loader has done
    /// since its first few batches, and costs the loader nothing. For a shorter time, see [`since`](Self::since).
    pub fn verdict(&self) -> Verdict {
        Verdict(self.cause())
    }
}

impl Verdict {
    /// What the bottleneck is.
    pub fn kind(&self) -> VerdictKind {
        match self.0 {
            Cause::TooEarly { .. } => VerdictKind::TooEarly,
            Cause::Compute { .. } => VerdictKind::Compute,
            Cause::Ahead { .. } => VerdictKind::Ahead,
            Cause::Start { .. } => VerdictKind::Start,
            Cause::Workers { .. } => VerdictKind::Workers,
            Cause::Pin { .. } => VerdictKind::Pin,
            Cause::Transfer { .. } => VerdictKind::Transfer,
            Cause::Decode { .. } => VerdictKind::Decode,
            Cause::Finish { .. } => VerdictKind::Finish,
            Cause::Device { .. } => VerdictKind::Device,
            Cause::Slots { .. } => VerdictKind::Slots,
            Cause::Overhead { .. } => VerdictKind::Overhead,
            Cause::Uneven { .. } => VerdictKind::Uneven,
            Cause::Mixed { .. } => VerdictKind::Mixed,
        }
    }

    /// The stage to blame, where it is one of the workers'.
    pub fn stage(&self) -> Option<Stage> {
        match self.0 {
            Cause::Workers { stage, .. } | Cause::Uneven { stage, .. } => Some(stage),
            _ => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns what users call a stage, and what makes it cheaper. `images` says whether samples have images.
fn words(stage: Stage, images: bool) -> (&'static str, &'static str) {
    match stage {
        Stage::Read if images => ("read (`Dataset::get`)", "make decoding cheaper, or decode the data only once"),
        Stage::Read => ("read (`Dataset::get`)", "make it cheaper, or do its work once and store the result"),
        Stage::Collate if images => ("`Collate::write`, which decodes images", DECODING),
        Stage::Augment => ("augment", "make it cheaper, or augment on the device in `finish`"),
        Stage::Collate => ("`Collate::write`", "make it cheaper, or move work to the device in `finish`"),
        Stage::Batcher => ("the batcher", "make it cheaper, or move work to the device"),
        Stage::Pin => ("pin (packing the batch)", "use fields of one size"),
        Stage::Finish => ("finish", "do less work in `finish`"),
        stage => (stage.name(), "do less work in each batch"),
    }
}

/// What makes the decoding of images on the workers cheaper.
const DECODING: &str = match cfg!(feature = "turbo") {
    true => "store smaller images",
    false => "store smaller images, or decode them by the feature `turbo`",
};

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let waits = |share: f64| format!("the step waits {} of the time", percent(share));
        match *self {
            Self::TooEarly { batches, errors: 0 } => write!(f, "too early to say: {batches} batches so far"),
            Self::TooEarly { batches, errors } => {
                write!(f, "too early to say: {batches} batches so far, and {errors} errors instead of batches")
            }
            Self::Compute { waits, idle } => {
                let (waits, idle) = (percent(waits), percent(idle));
                write!(
                    f,
                    "compute-bound: the loader is idle {idle}, the step waits {waits} of the time; nothing to change"
                )
            }
            Self::Ahead { waits: share, share: part } => {
                let (waits, part) = (waits(share), percent(part));
                write!(f, "compute-bound: {waits}, but only because the device is busy with earlier steps: ")?;
                write!(f, "transfers wait {part} of their time for these steps to end; nothing to change")
            }
            Self::Start { waits: share, first_batch } => {
                let waits = waits(share);
                write!(f, "{waits}, mostly {first_batch:.1?} for the first batch of each epoch: ")?;
                f.write_str("use fewer and longer epochs, or smaller batches")
            }
            Self::Workers { waits: share, stage, workers, busy, room, reads, images } => {
                let ((name, cheaper), waits, busy) = (words(stage, images), waits(share), percent(busy));
                let s = if workers == 1 { "" } else { "s" };
                write!(f, "{waits} for {name} ({workers} worker{s} busy {busy})")?;
                match reads {
                    Reads::Sleep { share, more } => {
                        write!(f, ", which waits for storage {} of its time: ", percent(share))?;
                        match more {
                            Some(more) => {
                                write!(f, "use `num_workers({more})`, since workers that sleep need no core")?
                            }
                            None => f.write_str("use faster storage or still more workers")?,
                        }
                    }
                    _ if room => write!(f, ": use more workers, or {cheaper}")?,
                    _ => write!(f, ": {cheaper}")?,
                }
                match reads {
                    Reads::Sleep { .. } => Ok(()),
                    _ if room => Ok(()),
                    // While a worker waits for a file, another one can use its thread of the machine.
                    Reads::Unknown if stage == Stage::Read => {
                        f.write_str("; more workers help only if they wait for storage")
                    }
                    _ => f.write_str("; more workers would share the same cores"),
                }
            }
            Self::Pin { waits: share, busy } => {
                let (waits, busy) = (waits(share), percent(busy));
                write!(f, "{waits} for the pin thread, busy {busy}: ")?;
                f.write_str("use a `Collate` instead of a batcher, or fields of one size")
            }
            Self::Transfer { waits: share, gb_per_s, busy, pageable } => {
                let (waits, busy) = (waits(share), percent(busy));
                write!(f, "transfer-bound: {waits}, the transfers copy {busy} of their time at {gb_per_s:.1} GB/s")?;
                if pageable {
                    f.write_str(" from ordinary memory: look in the log why it is not page-locked, or ")?;
                } else {
                    f.write_str(": ")?;
                }
                f.write_str("send fewer bytes, such as u8 instead of f32")
            }
            Self::Decode { waits: share, busy } => {
                let (waits, busy) = (waits(share), percent(busy));
                write!(f, "decode-bound: {waits}, the transfers decode on the device {busy} of their time: ")?;
                f.write_str("store smaller images")
            }
            Self::Finish { waits: share, share: part } => {
                let (waits, part) = (waits(share), percent(part));
                write!(f, "{waits}, {part} of that in `finish`, which runs in `next()`: ")?;
                f.write_str("do less work or launch fewer kernels there")
            }
            Self::Device { waits: share, share: part } => {
                let (waits, part) = (waits(share), percent(part));
                write!(f, "{waits}, and transfers wait {part} of their time for batches to leave device memory: ")?;
                f.write_str("drop batches after their step, or raise `prefetch`")
            }
            Self::Slots { waits: share, share: part, slots } => {
                let (waits, part) = (waits(share), percent(part));
                let s = if slots == 1 { "" } else { "s" };
                write!(
                    f,
                    "slot-bound: {waits}, and the workers wait {part} of the time for a free slot ({slots} slot{s}): "
                )?;
                f.write_str("raise `prefetch` or `pinned_limit`")
            }
            Self::Overhead { waits: share, work } => {
                let waits = waits(share);
                write!(f, "{waits}, though a batch is only {work:.1?} of work: raise `batch_size`")
            }
            Self::Uneven { waits: share, stage, p50, p99, group } => {
                let ((name, _), waits) = (words(stage, false), waits(share));
                match group {
                    0 | 1 => write!(f, "{waits} for slow samples, one in 100 takes {p99:.1?} in {name}, ")?,
                    _ => write!(
                        f,
                        "{waits} for slow samples, of groups of {group} one in 100 takes {p99:.1?} a sample in {name}, "
                    )?,
                }
                write!(f, "most take {p50:.1?}: ")?;
                f.write_str("raise `prefetch`, or look at those samples")
            }
            Self::Mixed { waits: share, workers, transfer } => {
                let (waits, workers, transfer) = (waits(share), percent(workers), percent(transfer));
                write!(f, "{waits}, no stage stands out (workers busy {workers}, transfers {transfer}): ")?;
                f.write_str("raise `prefetch`, so that slow batches matter less")
            }
        }
    }
}

#[cfg(test)]
mod tests;
