//! The device: how bytes get there, how much of its memory batches take, and page-locked memory for it.

#[cfg(feature = "cuda")]
mod cuda_context;
#[cfg(feature = "cuda")]
mod cuda_copy;
#[cfg(feature = "cuda")]
mod cuda_memory;
#[cfg(all(target_os = "linux", any(feature = "cuda", test)))]
mod linux;
mod target;
mod upload;
mod window;

#[cfg(all(target_os = "linux", feature = "cuda"))]
pub(crate) use linux::step_back;
pub use target::host_alloc;
pub(crate) use target::{Target, alloc_for};
pub(crate) use upload::{AnyTensor, Part, Uploader};
#[cfg(test)]
pub(crate) use upload::{Breaks, Call, Hang};
pub(crate) use window::DeviceWindow;
