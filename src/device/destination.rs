//! The thread that batches are copied for, and how much device memory is kept for them.

use burn::tensor::StreamId;

/// The thread that batches are copied for.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only the crate's own copies are for a thread"))]
pub(crate) struct Destination {
    /// The CubeCL stream of the thread that takes the batches.
    pub(super) consumer: StreamId,
    /// The most batches for which unused device memory is kept.
    pub(super) batches: usize,
    /// The number of blocks of memory that a batch takes.
    pub(super) fields: usize,
}
