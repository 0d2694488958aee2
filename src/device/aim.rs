//! For whom batches are copied, and how much memory is kept for that.

use burn::tensor::StreamId;

/// For whom batches are copied.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only the crate's own copies are for a thread"))]
pub(crate) struct Aim {
    /// The CubeCL stream of the thread that takes the batches.
    pub(super) consumer: StreamId,
    /// The most batches whose memory on the device is kept though nothing uses it.
    pub(super) batches: usize,
    /// The number of blocks of memory that a batch takes.
    pub(super) fields: usize,
}
