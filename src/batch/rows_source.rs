//! A collate over a dataset: what all batches made row by row share.

use super::samples::Samples;
use crate::{device::Target, memory::SlotLayout};
use std::sync::Arc;

/// A `Collate` over a dataset.
pub(crate) struct RowsSource<I, C> {
    pub(crate) samples: Arc<Samples<I>>,
    pub(crate) collate: Arc<C>,
    pub(crate) layout: Arc<SlotLayout>,
    pub(crate) target: Target,
    /// The number of samples that are read before they are written.
    pub(crate) group: usize,
}

/// Returns how many samples are read at a time. Small samples are read several at a time, so that the work of reading
/// (reference counts, locks) does not come between the copies. There it would keep the CPU from overlapping their cache
/// misses. See benches/README.md. Large samples are copied while they are in the cache.
pub(crate) fn group(row_bytes: usize) -> usize {
    (32 * 1024 / row_bytes.max(1)).clamp(1, 32)
}
