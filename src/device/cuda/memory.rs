//! Page-locked host memory of CUDA.
//!
//! A CUDA device copies from page-locked memory at full link speed, and from other memory through an extra copy by the
//! driver. Locking is slow, but seven to ten times faster for huge pages that already exist. So memory is mapped,
//! touched by several threads, and then registered.
#![expect(unsafe_code)]

use super::{
    context::{InContext, PORTABLE, ordinal},
    huge::{HUGE, registered},
};
use crate::{
    fault::Error,
    memory::{HeapAlloc, HostAlloc, HostBlock},
    observe::Counters,
    vocabulary::MemoryKind,
};
use burn::tensor::Device;
use cudarc::driver::{CudaContext, DriverError, result, sys};
use std::{ffi::CStr, fs, ptr::NonNull, sync::Arc};

/// Page-locked memory for one device, on its primary context, which Burn uses too.
#[derive(Debug)]
pub(crate) struct PinnedAlloc {
    context: Arc<CudaContext>,
    /// The NUMA node of the device, if the host has several.
    node: Option<u32>,
    /// Whether to fail instead of returning ordinary memory.
    required: bool,
    counters: Arc<Counters>,
}

impl PinnedAlloc {
    /// Opens the device.
    ///
    /// # Errors
    /// The reason in words, if there is no driver or no such device.
    pub(crate) fn new(ordinal: usize, required: bool, counters: &Arc<Counters>) -> Result<Self, String> {
        let (_in_context, context) = InContext::open(ordinal)?;
        let node = numa_node(&context);
        Ok(Self { context, node, required, counters: Arc::clone(counters) })
    }

    /// Returns the driver's own page-locked memory.
    fn driver(&self, bytes: usize) -> Result<HostBlock, DriverError> {
        let _in_context = InContext::new(&self.context)?;
        // SAFETY: the memory is zeroed below, before anything reads it. It is not write-combined, so reads are fast
        // too.
        let start = unsafe { result::malloc_host(bytes, PORTABLE) }?.cast::<u8>();
        let start = NonNull::new(start).ok_or(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY))?;
        // SAFETY: `malloc_host` gave `bytes` writable bytes.
        unsafe { start.write_bytes(0, bytes) };
        let owner = DriverMemory { context: Arc::clone(&self.context), start };
        // SAFETY: as above. The memory is page-aligned, freed only by `owner`, and known to nobody else.
        Ok(unsafe { HostBlock::from_raw(start, bytes, MemoryKind::Pinned, Box::new(owner)) })
    }
}

impl HostAlloc for PinnedAlloc {
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        let small = bytes < HUGE;
        let first =
            if small { Err("smaller than a huge page".into()) } else { registered(&self.context, self.node, bytes) };
        let message = match first {
            Ok(block) => return Ok(block),
            Err(registered) => match self.driver(bytes) {
                Ok(block) => return Ok(block),
                Err(driver) => {
                    format!("cuMemHostAlloc: {driver}; huge pages: {registered}; RLIMIT_MEMLOCK: {}", locked())
                }
            },
        };
        if self.required {
            return Err(Error::OutOfHostMemory { kind: "page-locked", bytes, message });
        }
        self.counters.warn(&format!("page-locked memory was refused, and ordinary memory is slower: {message}"));
        HeapAlloc.allocate(bytes)
    }
}

/// Memory of `cuMemHostAlloc`.
#[derive(Debug)]
struct DriverMemory {
    context: Arc<CudaContext>,
    start: NonNull<u8>,
}

// SAFETY: it only frees the memory, which any thread may do.
unsafe impl Send for DriverMemory {}
// SAFETY: `&DriverMemory` gives access to nothing.
unsafe impl Sync for DriverMemory {}

impl Drop for DriverMemory {
    fn drop(&mut self) {
        // SAFETY: from `malloc_host`, and freed only here.
        let free = || unsafe { result::free_host(self.start.as_ptr().cast()) };
        if let Err(error) = InContext::new(&self.context).and_then(|_in_context| free()) {
            log::debug!("burn-pinned: cuMemFreeHost: {error}");
        }
    }
}

/// Returns the NUMA node that the kernel says the device is attached to. `None` where there is one node only.
fn numa_node(context: &CudaContext) -> Option<u32> {
    if !fs::exists("/sys/devices/system/node/node1").unwrap_or(false) {
        return None;
    }
    let mut name = [0; 32];
    // SAFETY: the driver writes at most `len` bytes, a C string, to `name`.
    unsafe { sys::cuDeviceGetPCIBusId(name.as_mut_ptr(), name.len() as i32, context.cu_device()) }.result().ok()?;
    // SAFETY: as above. The array was zeroed, so the string ends.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_str().ok()?.to_lowercase();
    fs::read_to_string(format!("/sys/bus/pci/devices/{name}/numa_node")).ok()?.trim().parse().ok()
}

/// Returns an allocator of page-locked memory for a device, if it is a CUDA device.
///
/// # Errors
/// The reason in words, if there is no driver or no such device.
pub(in crate::device) fn pinned_alloc(
    device: &Device,
    required: bool,
    counters: &Arc<Counters>,
) -> Option<Result<Arc<dyn HostAlloc>, String>> {
    let ordinal = ordinal(device)?;
    Some(PinnedAlloc::new(ordinal, required, counters).map(|alloc| Arc::new(alloc) as Arc<dyn HostAlloc>))
}

/// The free and total bytes of a CUDA device's memory. `None` if the driver cannot be queried.
pub(in crate::device) fn device_memory(device: &Device) -> Option<(usize, usize)> {
    let ordinal = ordinal(device)?;
    let asked =
        InContext::open(ordinal).and_then(|_in_context| result::mem_get_info().map_err(|error| error.to_string()));
    asked.inspect_err(|problem| log::debug!("burn-pinned: the memory of a device is not known: {problem}")).ok()
}

/// The soft limit on locked memory, for messages. By itself it does not limit what a CUDA driver locks, but some systems
/// make it do so.
fn locked() -> String {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default(); // only Linux has it
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    line.and_then(|line| line.split_whitespace().next()).unwrap_or("unknown").into()
}
