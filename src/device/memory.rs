//! How much memory a device has.

use super::{cuda, target::Target};
use crate::memory::free_memory;

/// A device's memory in bytes, as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DeviceMemory {
    pub(crate) free: Option<usize>,
    /// The most bytes that can be allocated at once.
    pub(crate) largest: Option<usize>,
}

impl Target {
    /// Asks the device. A CPU backend has what the system has. Nothing is known of accelerators other than CUDA
    /// devices.
    pub(crate) fn memory(&self) -> DeviceMemory {
        if self.host {
            return DeviceMemory { free: free_memory(), largest: None };
        }
        if let Some((free, total)) = cuda::device_memory(&self.device) {
            // CubeCL allocates at most a quarter of the device's memory at once.
            return DeviceMemory { free: Some(free), largest: Some(total / 4) };
        }
        DeviceMemory::default()
    }
}
