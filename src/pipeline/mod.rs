//! The threads of a loader, and what they share: epochs, their batches at every stage, and who waits for what.

mod branch;
mod crew;
mod delivery;
mod epochs;
mod flow;
mod opening;
mod pin;
mod run;
mod shared;
mod steps;
mod threads;
mod transfer;
mod tune;
mod waits;
mod worker;

pub(crate) use crew::Crew;
pub(crate) use flow::Flow;
pub(crate) use run::{Delivery, RunId};
pub(crate) use shared::Pipeline;
pub(crate) use threads::Threads;
pub use tune::{Auto, Count};
pub(crate) use tune::{MOST_AHEAD, Settings, Tuner, Tuning};
