//! Random draws for samplers.

mod alias;
mod choices;
mod draws;
mod fingerprint;
mod packed;
mod shared_plan;
mod shuffle;
mod sum_tree;
mod weights;
mod windows;

pub(crate) use alias::AliasTable;
pub(crate) use choices::Choices;
pub(crate) use draws::{below, draws};
pub(crate) use fingerprint::Fingerprint;
pub(crate) use packed::{Cursor, LazyMap, PackedList, listed, no_memory, reserved};
pub(crate) use shared_plan::SharedPlan;
pub(crate) use shuffle::Shuffle;
pub(crate) use sum_tree::SumTree;
pub(crate) use weights::{check_count, checked};
pub(crate) use windows::ShortEpoch;

/// The version of the orders that seeds give. Saved positions and plans of another version are not used. Since version 2, shuffles of more
/// than 4,194,304 samples, epochs shorter than a pass, mixtures, and draws by weight without replacement have another order.
pub(crate) const VERSION: u32 = 3;
