//! The device: how bytes get there, how much of its memory batches take, and page-locked memory for it. Also what moves
//! the tensors of a batch there, whatever its type, and keeps the rows of a data set.

mod aim;
mod common;
#[cfg(feature = "cuda")]
mod cube_rows;
#[cfg(feature = "cuda")]
mod cuda_block;
#[cfg(feature = "cuda")]
mod cuda_blocks;
#[cfg(feature = "cuda")]
mod cuda_context;
#[cfg(feature = "cuda")]
mod cuda_copy;
#[cfg(feature = "cuda")]
mod cuda_event;
#[cfg(feature = "cuda")]
mod cuda_memory;
#[cfg(feature = "cuda")]
mod cuda_peer;
#[cfg(any(feature = "cuda", test))]
mod cuda_queues;
#[cfg(feature = "cuda")]
mod cuda_tensor;
#[cfg(feature = "cuda")]
mod decode;
mod flat;
#[cfg(all(target_os = "linux", any(feature = "cuda", test)))]
mod linux;
mod memory;
mod peer;
#[cfg(any(feature = "cuda", test))]
mod reuse;
mod table;
mod target;
mod tensors;
#[cfg(any(feature = "cuda", test))]
mod thread_end;
mod threads;
mod transport;
mod upload;
mod window;

pub(crate) use common::Common;
#[cfg(feature = "cuda")]
pub(crate) use cuda_queues::prepare;
pub(crate) use flat::{AnyTensor, DeviceTensor, FlatTensor};
pub(crate) use memory::DeviceMemory;
pub use peer::copy_to;
pub(crate) use table::{GatheredRows, Table};
pub(crate) use target::Target;
pub use target::host_alloc;
pub use tensors::{MapTensors, TensorMapper};
pub(crate) use transport::Transport;
pub(crate) use upload::Uploader;
pub(crate) use window::{DeviceWindow, Room, Turn};

#[cfg(all(test, feature = "vision"))]
pub(crate) mod tests;
