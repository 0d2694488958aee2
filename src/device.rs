//! The device: copies to it, limits on its memory for batches, and page-locked host memory. Also moves the tensors of
//! any batch type, and keeps the rows of a dataset.

#[cfg_attr(not(feature = "cuda"), path = "device/no_cuda.rs")]
mod cuda;
#[cfg(feature = "cuda")]
mod decode;
mod destination;
mod flat;
#[cfg(all(target_os = "linux", any(feature = "cuda", test)))]
mod linux;
mod memory;
mod peer;
#[cfg(any(feature = "cuda", test))]
mod queues;
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

pub(crate) use cuda::{TransferState, few_queues, prepare};
pub(crate) use flat::{AnyTensor, DeviceTensor, FlatTensor};
pub(crate) use memory::DeviceMemory;
pub use peer::copy_to;
pub(crate) use table::{GatheredRows, Table};
pub(crate) use target::Target;
pub(crate) use target::alloc_for;
pub use target::host_alloc;
pub use tensors::{MapTensors, TensorMapper};
pub(crate) use transport::Transport;
pub(crate) use upload::Uploader;
pub(crate) use window::{DeviceWindow, Room, Turn};

#[cfg(all(test, feature = "vision"))]
pub(crate) mod tests;
