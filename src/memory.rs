//! What is known of memory: its kind on the host, and whether it is in use on the device.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of memory a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MemoryKind {
    /// Ordinary memory, which a device can only read through a copy.
    Pageable,
    /// Page-locked memory, which a device reads at the speed of the link.
    Pinned,
    /// Page-locked huge pages, which are locked much faster.
    PinnedHuge,
}

impl MemoryKind {
    /// Whether the memory is page-locked.
    pub fn is_pinned(self) -> bool {
        self != Self::Pageable
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pageable => "pageable",
            Self::Pinned => "page-locked",
            Self::PinnedHuge => "page-locked (huge pages)",
        })
    }
}

/// Holds batches in device memory.
pub(crate) trait OnDevice: fmt::Debug + Send + Sync {
    /// Bytes of those that are in use now.
    fn bytes(&self) -> usize;
}

/// Says whether a batch's memory on the device is still in use: by a tensor, or by work that was launched and is not done.
pub(crate) type InUse = Box<dyn Fn() -> bool + Send>;
