//! A folder on disk where a data set keeps what is expensive to get: pages of remote objects, decompressed shards.
//!
//! ```text
//! cache/
//!   burn-pinned-cache           marks the folder; locked while a set is opened (`folder.rs`)
//!   set-<hash of the objects>/  one for each data set (`folder.rs`); of shards, its name ends with the bytes that it reserves
//!     in-use                    its readers hold a shared lock on it; it was changed when the set was opened last
//!     pages-<n / 128>/<n>       page n with its checksum, of 1 MB or of the end of an object (`pages.rs`)
//!     <n>-<checksum>-<name>.mds a decompressed shard (`shards.rs`)
//!     good-since                shards that have not changed since this time are good; locked by the process that writes them
//! ```
//!
//! - A file is written under a temporary name, so it exists completely or not at all, even if a process is killed. A file with a wrong
//!   checksum counts as missing. There is no list of the files.
//! - An epoch reads each sample once. So a page that was just read is not needed sooner than others, and evicting a page for another is
//!   never worthwhile. A cache fills up to its limit and keeps what it has. If a data set that is being opened needs space, sets that no
//!   process has open are evicted completely (`folder.rs`).
//! - All sets together have a limit. No file records how much is used: a reader counts the files when it opens its set, and again after it
//!   has written 64 pages (`room.rs`). Meanwhile others may write too. So each reader may exceed the limit by 64 pages. No space is
//!   reserved for a page while it is fetched. If the folder is full when the page arrives, the page is not kept.
//! - Threads of one reader fetch a page once (`paged.rs`). Two readers may both fetch a page: the later one replaces the file by
//!   one with the same bytes.
//! - A folder, file or link that may be somebody else's is refused (`ours.rs`).

#[cfg_attr(not(feature = "mds"), allow(dead_code, reason = "decompressed shards need all of it"))]
mod disk;
#[cfg_attr(not(feature = "mds"), allow(dead_code, reason = "decompressed shards need all of it"))]
mod folder;
mod lock;
mod ours;
#[cfg(feature = "remote")]
mod paged;
#[cfg(feature = "remote")]
mod pages;
#[cfg(feature = "remote")]
mod room;
#[cfg(feature = "mds")]
mod shards;
#[cfg(all(test, feature = "mds", feature = "remote", unix))]
mod tests;

#[cfg(feature = "mds")]
pub(crate) use disk::{SMALL_FILES, whole_blocks};
pub(crate) use folder::unusable;
#[cfg(feature = "mds")]
pub(crate) use folder::{CacheSet, id};
#[cfg(feature = "remote")]
pub(crate) use ours::is_foreign;
#[cfg(feature = "remote")]
pub(crate) use paged::PageCache;
#[cfg(feature = "remote")]
pub use paged::RUN;
#[cfg(feature = "remote")]
pub use pages::{PAGE, on_disk};
#[cfg(feature = "mds")]
pub(crate) use shards::Shards;
