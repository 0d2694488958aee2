//! Random draws for samplers.

mod alias;
mod draws;
mod fingerprint;
mod packed;
mod shared_plan;
mod shuffle;
mod weights;
mod windows;

pub(crate) use alias::AliasTable;
pub(crate) use draws::{below, draws};
pub(crate) use fingerprint::Fingerprint;
pub(crate) use packed::{LazyMap, PackedList, reserved};
pub(crate) use shared_plan::SharedPlan;
#[cfg(test)]
pub(crate) use shuffle::LONGEST_TABLE;
pub(crate) use shuffle::Shuffle;
pub(crate) use weights::{check_count, checked};
pub(crate) use windows::ShortEpoch;

/// The version of the orders that seeds give. Saved positions and plans of another version are not used. Since version 2, shuffles of more
/// than 65,536 samples, and epochs shorter than a pass, have another order.
pub(crate) const VERSION: u32 = 2;
