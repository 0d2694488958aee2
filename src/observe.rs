//! Statistics of a loader. [`Stats`] is a snapshot, with the times of each stage ([`Stages`], [`StageStats`]) and the
//! number of batches in each queue ([`Queues`]). A [`Verdict`] says what the training loop waits for ([`Cause`]), and
//! what to change. A [`Timeline`] is a recording of what each thread did and when. It can be saved as a trace for
//! Perfetto.

mod counters;
mod loops;
mod span;
mod stats;
mod step_clock;
mod task_clock;
mod timeline;
mod warnings;

pub(crate) use counters::{BatchMemory, Counters};
#[cfg(feature = "metrics")]
pub(crate) use loops::Sums;
pub(crate) use span::{Span, StageGuard};
pub use stats::{Cause, Queues, StageStats, Stages, Stats, Verdict};
pub(crate) use step_clock::StepClock;
pub(crate) use task_clock::TaskClock;
pub(crate) use timeline::Lane;
pub use timeline::Timeline;
pub(crate) use warnings::warn;
