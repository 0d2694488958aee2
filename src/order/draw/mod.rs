//! Random draws that samplers are made of.

mod alias;
mod draws;
mod fingerprint;
mod lazy_sort;
mod packed;
mod permutation;
mod shared_plan;
mod weights;

pub(crate) use alias::AliasTable;
pub(crate) use draws::{Draws, below};
pub(crate) use fingerprint::Fingerprint;
pub(crate) use lazy_sort::LazySort;
pub(crate) use packed::{LazyMap, PackedList};
pub(crate) use permutation::permutation;
pub(crate) use shared_plan::SharedPlan;
pub(crate) use weights::{check_count, checked};
