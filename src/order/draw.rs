//! Random draws for samplers.

mod alias;
mod draws;
mod fingerprint;
mod packed;
mod shared_plan;
mod weights;
mod windows;

pub(crate) use alias::AliasTable;
pub(crate) use draws::{below, draws};
pub(crate) use fingerprint::Fingerprint;
pub(crate) use packed::{LazyMap, PackedList};
pub(crate) use shared_plan::SharedPlan;
pub(crate) use weights::{check_count, checked};
pub(crate) use windows::window;
