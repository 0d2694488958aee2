//! Statistics: snapshots of the counters, as a table and as a verdict.

mod cause;
mod report;
mod since;
mod stage;
mod table;
mod verdict;

#[cfg(test)]
pub(crate) use cause::Cause;
pub(crate) use cause::EARLY;
pub use report::{Queues, Stages, Stats};
pub use stage::StageStats;
pub(crate) use stage::{StageCounters, TIMED, nanos};
pub use verdict::{Verdict, VerdictKind};
