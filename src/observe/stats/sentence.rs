//! The text of a verdict: the cause in one line, and what to change.

use super::verdict::{Cause, LEAST_WAITS, MOST_SHARE, Verdict};
use crate::vocabulary::Stage;
use std::fmt;

/// Returns a stage's name for users, and advice to make it cheaper. `images` says whether samples have images.
fn words(stage: Stage, images: bool) -> (&'static str, &'static str) {
    match stage {
        Stage::Read if images => (READ, "make decoding cheaper, or decode the data only once"),
        Stage::Read => (READ, "make it cheaper, or do its work once and store the result"),
        Stage::Collate if images => ("`Collate::write`, which decodes images", DECODING),
        Stage::Augment => ("augment", "make it cheaper, or augment on the device in `finish`"),
        Stage::Collate => ("`Collate::write`", "make it cheaper, or move work to the device in `finish`"),
        Stage::Batcher => ("the batcher", "make it cheaper, or move work to the device"),
        Stage::Pin => ("pin (packing the batch)", "use a `Collate` instead of a batcher, or fields of one size"),
        Stage::Finish => ("finish", "do less work in `finish`"),
        Stage::Stream => (
            "the iterator of the stream",
            "move its work to `Stream::map`, which workers do, or read several shards at once (`interleave`)",
        ),
        stage => (stage.name(), "do less work in each batch"),
    }
}

/// The advice for rows of compressed Parquet files.
const SCATTERED: &str = "this order decodes each page many times; \
     write `.order(BlockShuffle::new(rows.blocks()?, seed))`, or open the rows with more `memory`";

/// The advice for more throughput from a remote store.
const STORE: &str =
    "open the rows with more `requests` or `read_ahead`, shuffle by blocks (`BlockShuffle`), or keep a `cache`";

/// The advice for a busy server that makes requests wait.
const BUSY: &str = "send a token, open the rows with fewer `requests`, or keep a `cache`";

/// From this share of waits, the loop does practically nothing else.
const NO_STEP: f64 = 0.95;

const READ: &str = "read (`Dataset::get`)";

/// The advice for the decoding of images on the workers.
const DECODING: &str = match cfg!(feature = "turbo") {
    true => "store smaller images",
    false => "store smaller images, or decode them by the feature `turbo`",
};

/// Adds the advice to keep the dataset on the device, if the device has memory for it.
fn or_keep(f: &mut fmt::Formatter<'_>, keep: Option<usize>) -> fmt::Result {
    let Some(bytes) = keep else { return Ok(()) };
    let (size, unit) = if bytes >= 100_000_000 { (bytes as f64 / 1e9, "GB") } else { (bytes as f64 / 1e6, "MB") };
    write!(f, "; or use `build_kept`, which reads once: the data set is {size:.2} {unit}")
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        self.notes.iter().try_for_each(|note| write!(f, "\nnote: {note}"))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let waits = |share: f64| format!("the step waits {} of the time", percent(share));
        let of = |workers: usize, busy: f64| {
            format!("({workers} worker{} busy {})", if workers == 1 { "" } else { "s" }, percent(busy))
        };
        match *self {
            Self::TooEarly { batches, errors } => {
                write!(f, "too early to say: {batches} batch{} so far", if batches == 1 { "" } else { "es" })?;
                if errors > 0 {
                    write!(f, ", and {errors} error{} instead of batches", if errors == 1 { "" } else { "s" })?;
                }
                Ok(())
            }
            Self::Compute { waits: share, idle } if share >= LEAST_WAITS => {
                write!(
                    f,
                    "the loader keeps up: it is idle {}, and batches lie ready; {}: ",
                    percent(idle),
                    waits(share)
                )?;
                f.write_str("if short steps follow each other, raise `prefetch` or `pinned_limit`")
            }
            Self::Compute { waits: share, idle } => {
                write!(f, "compute-bound: the loader is idle {}, {}; nothing to change", percent(idle), waits(share))
            }
            Self::Start { waits: share, first_batch } => {
                write!(f, "{}, mostly {first_batch:.1?} for the first batch of each epoch: ", waits(share))?;
                f.write_str("use fewer and longer epochs, or smaller batches")
            }
            Self::Storage { waits: share, workers, busy, asleep, store, asked_to_wait, total, more, keep } => {
                write!(f, "{} for {READ} {}, ", waits(share), of(workers, busy))?;
                write!(
                    f,
                    "which waits for {} {} of its time: ",
                    if store { "the store" } else { "storage" },
                    percent(asleep)
                )?;
                match (asked_to_wait, more) {
                    (Some(asked), _) => {
                        let (asked, total) = (asked.as_secs_f64(), total.as_secs_f64());
                        write!(
                            f,
                            "the store is busy, and made requests wait {asked:.0} s of the last {total:.0} s: {BUSY}"
                        )
                    }
                    _ if store => f.write_str(STORE),
                    (None, Some(more)) => write!(f, "use `num_workers({more})`, since workers that sleep need no core"),
                    (None, None) => f.write_str("use faster storage or still more workers"),
                }?;
                or_keep(f, keep)
            }
            Self::Workers { waits: share, stage, workers, busy, more, images, scattered, keep } => {
                let (name, cheaper) = words(stage, images);
                write!(f, "{} for {name} {}: ", waits(share), of(workers, busy))?;
                match more {
                    _ if scattered => f.write_str(SCATTERED),
                    Some(true) => write!(f, "use more workers, or {cheaper}"),
                    Some(false) => write!(f, "{cheaper}; more workers would share the same cores"),
                    None => write!(f, "{cheaper}; more workers help only if they wait for storage"),
                }?;
                or_keep(f, keep)
            }
            Self::Transfer { waits: share, gb_per_s, busy, pageable, keep } => {
                let (waits, busy) = (waits(share), percent(busy));
                write!(f, "transfer-bound: {waits}, the transfers copy {busy} of their time at {gb_per_s:.1} GB/s")?;
                if pageable {
                    f.write_str(" from ordinary memory: let it be page-locked (a note says why it is not), or ")?;
                } else {
                    f.write_str(": ")?;
                }
                f.write_str("send fewer bytes, such as u8 instead of f32")?;
                or_keep(f, keep)
            }
            Self::Decode { waits: share, busy, keep } => {
                let (waits, busy) = (waits(share), percent(busy));
                write!(f, "decode-bound: {waits}, the transfers decode on the device {busy} of their time: ")?;
                f.write_str("store smaller images")?;
                or_keep(f, keep)
            }
            Self::Device { waits: share, full, kept: false } => {
                let (waits, full) = (waits(share), percent(full));
                write!(f, "compute-bound: {waits}, but only because the device is busy with earlier steps: ")?;
                write!(f, "transfers wait {full} of their time for these steps to end; nothing to change")
            }
            Self::Device { waits: share, full, kept: true } => {
                let (waits, full) = (waits(share), percent(full));
                write!(f, "{waits}, and transfers wait {full} of their time for batches to leave device memory: ")?;
                f.write_str("drop batches after their step, or raise `prefetch`")
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
            Self::Stage { waits: share, stage, share: part } => {
                let (name, advice) = match stage {
                    Stage::SlotWait => ("the wait for a free slot", "raise `prefetch` or `pinned_limit`"),
                    Stage::Finish if part >= MOST_SHARE => {
                        ("`finish` in `next()`", "do less work or launch fewer kernels there")
                    }
                    Stage::Pin | Stage::Stream => words(stage, false),
                    // A loader that never waits for a slot gains nothing from more slots.
                    stage if share >= NO_STEP => (
                        words(stage, false).0,
                        "raise `batch_size` if batches are tiny, and look again with a step: a loop without one always waits",
                    ),
                    // No thread is busy all the time.
                    stage => (words(stage, false).0, "raise `prefetch`, or `batch_size` if batches are tiny"),
                };
                write!(f, "{}, and the most time goes into {name} ({}): {advice}", waits(share), percent(part))
            }
        }
    }
}
