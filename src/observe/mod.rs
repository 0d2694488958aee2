//! What a loader has done: counters, statistics, verdicts, and the timeline.

mod counters;
mod loops;
#[cfg(feature = "cuda")]
mod nvtx;
mod span;
mod stats;
mod step_clock;
mod task_clock;
mod timeline;

#[cfg(feature = "metrics")]
pub(crate) use counters::Totals;
pub(crate) use counters::{Counters, OnDevice};
pub(crate) use loops::CopyId;
pub(crate) use span::{Entered, Span};
#[cfg(test)]
pub(crate) use stats::Cause;
pub use stats::{Queues, StageStats, Stages, Stats, Verdict, VerdictKind};
pub(crate) use step_clock::StepClock;
pub(crate) use task_clock::TaskClock;
pub(crate) use timeline::Lane;
pub use timeline::Timeline;
