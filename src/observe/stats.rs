//! Statistics: snapshots of the counters, as a table and as a verdict.

mod report;
mod sentence;
mod since;
mod stage;
mod table;
mod verdict;

pub use report::{Queues, Stages, Stats};
pub use stage::StageStats;
pub(crate) use stage::{StageCounters, TIMED, nanos};
pub(crate) use verdict::EARLY_BATCHES;
pub use verdict::{Cause, Verdict};
