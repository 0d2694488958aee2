//! CUDA: page-locked memory, copies on streams of the crate's own, and tensors of memory that it has filled.

pub(super) mod block;
pub(super) mod blocks;
pub(super) mod context;
pub(super) mod copy;
pub(super) mod event;
pub(super) mod memory;
pub(super) mod peer;
pub(super) mod rows;
pub(super) mod tensor;
