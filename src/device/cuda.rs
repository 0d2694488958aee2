//! CUDA: page-locked memory, copies on the crate's own streams, and tensors made from memory that it has filled. `no_cuda.rs` has the same
//! interface.

mod block;
mod blocks;
pub(super) mod context;
mod copy;
mod event;
#[cfg_attr(not(target_os = "linux"), path = "cuda/no_huge.rs")]
mod huge;
mod memory;
mod peer;
pub(super) mod queues;
mod rows;
mod state;
mod tensor;
mod transport;

pub(super) use super::decode::{Engine, engine};
pub(crate) use super::queues::few_queues;
pub(super) use memory::{device_memory, pinned_alloc};
pub(super) use peer::copied;
pub(crate) use queues::prepare;
pub(super) use rows::parts;
pub(crate) use state::TransferState;
pub(super) use transport::transport;
