//! A folder on disk where a data set keeps what is dear to get: pages of objects behind a network, decompressed shards.
//!
//! Each data set has a folder of its own there, a set. An epoch reads each sample once. So a page that was just read is not
//! needed sooner than others, and it is never worth while to evict a page for another one. A cache fills up to its limit
//! and keeps what it has. Sets that nobody has open are evicted as a whole, when another data set is opened that needs the
//! room.

#[cfg(all(feature = "remote", unix))]
mod bits;
mod disk;
mod folder;
#[cfg(all(feature = "remote", unix))]
mod layout;
mod ours;
#[cfg(all(feature = "remote", unix))]
mod paged;
#[cfg(all(feature = "remote", unix))]
mod pages;
mod set;
mod sums;
#[cfg(all(feature = "remote", unix))]
mod table;
#[cfg(all(test, feature = "remote", unix))]
mod tests;

pub(crate) use disk::{SMALL, whole_blocks};
#[cfg(all(feature = "remote", unix))]
pub(crate) use folder::Refusal;
pub(crate) use folder::{Folder, unusable};
#[cfg(all(feature = "remote", unix))]
pub(crate) use paged::Cached;
pub(crate) use set::{Id, SHARD, Set};
pub(crate) use sums::{Sums, bytes_of};
