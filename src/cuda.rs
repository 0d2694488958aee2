//! Page-locked memory of CUDA. The only file that imports `cudarc`; with `slot.rs` it holds all the `unsafe` of the crate.
//!
//! A CUDA device copies from page-locked memory at the speed of the link, and from other memory through a copy of the driver's.
//! Locking is slow (`cuMemHostAlloc`: 17 to 55 ms for 38 MB, 462 ms for 1 GB on an H200's host), and seven to ten times faster
//! for huge pages that are there already (64 ms for 1 GB): so memory is mapped, touched by several threads, then registered.
#![expect(unsafe_code)]

use crate::{
    error::{BoxError, Error},
    memory::{InUse, MemoryKind},
    slot::{HeapAlloc, HostAlloc, HostBlock},
};
use burn::{
    backend::{
        BackendTensor, DispatchTensorKind,
        fusion::{Fusion, FusionBackend},
    },
    cubecl::cuda::CudaRuntime,
    tensor::{DType, Device, Tensor, kind::Basic},
};
use cubecl_runtime::{
    runtime::Runtime,
    server::{ServerStorage, WeakBufferBinding},
    storage::{ComputeStorage, ManagedResource},
};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result, sys};
use std::{
    ffi::CStr,
    fs, mem,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};
#[cfg(target_os = "linux")]
use std::{ffi::c_void, thread};

/// The size of a huge page on x86-64 and, with 4 KB base pages, on Arm.
const HUGE: usize = 2 << 20;
/// Threads that touch fresh memory: what saturated the host in the measurement above.
#[cfg(target_os = "linux")]
const TOUCHERS: usize = 8;
/// Usable from every CUDA context of the process, and so for every device.
const PORTABLE: u32 = 1;

/// Page-locked memory for one device, on its primary context, which Burn uses too.
#[derive(Debug)]
pub(crate) struct PinnedAlloc {
    context: Arc<CudaContext>,
    /// The NUMA node next to the device, where the host has several.
    node: Option<u32>,
    /// Fail rather than give ordinary memory.
    required: bool,
    warned: AtomicBool,
}

/// Lowers the priority of the calling worker, so that the threads that copy and launch get a core at once where all are busy:
/// 1 to 4 % more of the link on an H200's host.
#[cfg(target_os = "linux")]
pub(crate) fn step_back() {
    // SAFETY: on Linux 0 names the calling thread; it needs no right to be less important, and a refusal changes nothing.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
}

/// The CUDA index of a device, if it is one.
pub(crate) fn ordinal(device: &Device) -> Option<usize> {
    // Devices are equal whatever their autodiff setting; 64 is more than any host has.
    (0..64).find(|index| *device == Device::cuda(*index))
}

impl PinnedAlloc {
    /// Opens the device.
    ///
    /// # Errors
    /// The reason in words, if there is no driver or no such device.
    pub(crate) fn new(ordinal: usize, required: bool) -> Result<Self, String> {
        // SAFETY: it only tries to load the driver's library, which has no unsound initialisers.
        if !unsafe { sys::is_culib_present() } {
            return Err("no NVIDIA driver was found".into());
        }
        let context = CudaContext::new(ordinal).map_err(|error| format!("CUDA device {ordinal}: {error}"))?;
        let node = numa_node(&context);
        Ok(Self { context, node, required, warned: AtomicBool::new(false) })
    }

    #[cfg(not(target_os = "linux"))]
    fn registered(&self, _: usize) -> Result<HostBlock, String> {
        Err("they are had on Linux only".into())
    }

    /// Huge pages, near the device, touched and then registered.
    #[cfg(target_os = "linux")]
    fn registered(&self, bytes: usize) -> Result<HostBlock, String> {
        let mapping = Mapping::new(bytes, self.node)?;
        mapping.touch();
        self.context.bind_to_thread().map_err(|error| error.to_string())?;
        let start = mapping.start.as_ptr().cast::<c_void>();
        // SAFETY: the range is mapped, and stays so until `Registered` has unregistered it.
        unsafe { sys::cuMemHostRegister_v2(start, bytes, PORTABLE) }.result().map_err(|error| error.to_string())?;
        let start = mapping.start;
        let owner = Registered { context: Arc::clone(&self.context), mapping };
        // SAFETY: the mapping holds `bytes` zeroed bytes at a multiple of the huge page, lives until `owner` is dropped, and is
        // known to nobody else.
        Ok(unsafe { HostBlock::from_raw(start, bytes, MemoryKind::PinnedHuge, Box::new(owner)) })
    }

    /// The driver's own page-locked memory.
    fn driver(&self, bytes: usize) -> Result<HostBlock, DriverError> {
        self.context.bind_to_thread()?;
        // SAFETY: the memory is zeroed below, before anything reads it. It is not write-combined, so reads are fast too.
        let start = unsafe { result::malloc_host(bytes, PORTABLE) }?.cast::<u8>();
        let start = NonNull::new(start).ok_or(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY))?;
        // SAFETY: `malloc_host` gave `bytes` writable bytes.
        unsafe { start.write_bytes(0, bytes) };
        let owner = DriverMemory { context: Arc::clone(&self.context), start };
        // SAFETY: as above; page-aligned, freed by `owner` alone, known to nobody else.
        Ok(unsafe { HostBlock::from_raw(start, bytes, MemoryKind::Pinned, Box::new(owner)) })
    }
}

impl HostAlloc for PinnedAlloc {
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        let small = bytes < HUGE;
        let first = if small { Err("smaller than a huge page".into()) } else { self.registered(bytes) };
        let message = match first {
            Ok(block) => return Ok(block),
            Err(registered) => match self.driver(bytes) {
                Ok(block) => return Ok(block),
                Err(driver) => {
                    let locked = crate::limits::locked_memory().unwrap_or_else(|| "unknown".into());
                    format!("cuMemHostAlloc: {driver}; huge pages: {registered}; RLIMIT_MEMLOCK: {locked}")
                }
            },
        };
        if self.required {
            return Err(Error::OutOfHostMemory { kind: "page-locked", bytes, message });
        }
        if !self.warned.swap(true, Relaxed) {
            log::warn!(
                "burn-pinned: page-locked memory was refused ({message}); going on with ordinary memory, slower"
            );
        }
        HeapAlloc.allocate(bytes)
    }
}

/// An anonymous mapping that starts at a huge page.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Mapping {
    base: NonNull<c_void>,
    mapped: usize,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process; any thread may touch or unmap it.
#[cfg(target_os = "linux")]
unsafe impl Send for Mapping {}
// SAFETY: `&Mapping` writes only in `touch`, which runs before the memory is handed out.
#[cfg(target_os = "linux")]
unsafe impl Sync for Mapping {}

#[cfg(target_os = "linux")]
impl Mapping {
    fn new(bytes: usize, node: Option<u32>) -> Result<Self, String> {
        let mapped = bytes.checked_add(HUGE).ok_or("the size overflows")?; // room to align; what is not touched costs nothing
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), mapped, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(format!("mmap: {}", std::io::Error::last_os_error()));
        }
        let base = NonNull::new(base).ok_or("mmap gave no address")?;
        let skip = base.as_ptr().cast::<u8>().align_offset(HUGE);
        // SAFETY: `skip` is below HUGE, by which the mapping is longer than `bytes`.
        let start = unsafe { base.cast::<u8>().add(skip) };
        // SAFETY: the range lies in the mapping. Both are advice: a refusal leaves ordinary pages, anywhere.
        unsafe {
            libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
            if let Some(node) = node.filter(|node| *node < 64) {
                let (preferred, nodes) = (1, 1u64 << node);
                libc::syscall(libc::SYS_mbind, start.as_ptr(), bytes, preferred, &raw const nodes, 64u64, 0);
            }
        }
        Ok(Self { base, mapped, start, bytes })
    }

    /// Makes the pages exist, in parallel.
    fn touch(&self) {
        let part = self.bytes.div_ceil(TOUCHERS).next_multiple_of(HUGE);
        thread::scope(|scope| {
            for from in (0..self.bytes).step_by(part) {
                // SAFETY: parts are disjoint and in the mapping, and nobody else knows the memory yet.
                let touch = move || unsafe {
                    std::ptr::write_bytes(self.start.as_ptr().add(from), 0, part.min(self.bytes - from));
                };
                // A thread that cannot be had leaves its pages to `cuMemHostRegister`.
                let _ = thread::Builder::new().name("bp-touch".into()).spawn_scoped(scope, touch);
            }
        });
    }
}

#[cfg(target_os = "linux")]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and unmapped here alone; whoever used it is gone.
        unsafe { libc::munmap(self.base.as_ptr(), self.mapped) };
    }
}

/// A mapping while the driver has its pages locked.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Registered {
    context: Arc<CudaContext>,
    mapping: Mapping,
}

#[cfg(target_os = "linux")]
impl Drop for Registered {
    fn drop(&mut self) {
        let start = self.mapping.start.as_ptr().cast::<c_void>();
        // SAFETY: registered in `registered`, and unregistered here alone, before the mapping goes.
        let done = self.context.bind_to_thread().and_then(|()| unsafe { sys::cuMemHostUnregister(start) }.result());
        if let Err(error) = done {
            log::debug!("burn-pinned: cuMemHostUnregister: {error}"); // as the process ends the driver may be gone first
        }
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
        // SAFETY: from `malloc_host`, and freed here alone.
        let free = || unsafe { result::free_host(self.start.as_ptr().cast()) };
        if let Err(error) = self.context.bind_to_thread().and_then(|()| free()) {
            log::debug!("burn-pinned: cuMemFreeHost: {error}");
        }
    }
}

/// Copies to a device on a CUDA copy stream of this crate, into memory that Burn allocated.
pub(crate) struct CopyStream {
    stream: Arc<CudaStream>,
    done: CudaEvent,
    /// What the copies under way read, and what keeps the memory that they write in its place.
    in_flight: Vec<(bytes::Bytes, DeviceMemory)>,
    /// The largest tensor since the last wait.
    largest: Option<(usize, WeakBufferBinding)>,
    /// The bytes of all tensors since then.
    sent: usize,
}

/// Memory of a tensor: while this lives, CubeCL neither moves nor reuses it.
type DeviceMemory = ManagedResource<<<Server as ServerStorage>::Storage as ComputeStorage>::Resource>;
/// CubeCL's for CUDA.
type Server = <CudaRuntime as Runtime>::Server;

impl CopyStream {
    /// A stream on the device's primary context.
    ///
    /// # Errors
    /// The reason in words.
    pub(crate) fn new(ordinal: usize) -> Result<Self, DriverError> {
        let context = CudaContext::new(ordinal)?;
        let stream = context.new_stream()?;
        // A thread that waits sleeps: its core is for the workers.
        let done = context.new_event(Some(sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC))?;
        Ok(Self { stream, done, in_flight: Vec::new(), largest: None, sent: 0 })
    }

    /// Starts to copy bytes into a new tensor of one dimension. Until [`wait`](Self::wait) its values are anything.
    ///
    /// # Errors
    /// If the device has no memory for it, or refuses the copy.
    pub(crate) fn tensor<K: Basic>(
        &mut self,
        bytes: bytes::Bytes,
        values: usize,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor<1, K>, BoxError> {
        let tensor = Tensor::<1, K>::empty([values], (device, dtype));
        let (memory, weak) = memory(&tensor)?;
        let resource = memory.resource();
        if (resource.size as usize) < bytes.len() || bytes.len() != values * dtype.size() {
            return Err(format!("{} bytes do not fit {} of the device", bytes.len(), resource.size).into());
        }
        let to = resource.ptr;
        if self.largest.as_ref().is_none_or(|(largest, _)| *largest < bytes.len()) {
            self.largest = Some((bytes.len(), weak));
        }
        self.sent += bytes.len();
        self.in_flight.push((bytes, memory));
        let Some((bytes, _)) = self.in_flight.last() else { return Ok(tensor) };
        self.stream.context().bind_to_thread()?;
        // SAFETY: `to` is the start of as many bytes of the device as are copied. Nobody else knows the tensor yet, and CubeCL
        // hands out memory again only when the work of other streams on it is done (`wait` of its collector), while nothing runs on
        // the CubeCL stream that this thread allocates on. `in_flight` keeps both ends until `wait` has seen the copy end.
        unsafe { result::memcpy_htod_async(to, bytes, self.stream.cu_stream()) }?;
        Ok(tensor)
    }

    /// Waits until the copies are done, at once rather than asleep if they are `short`; lets go of what they read.
    ///
    /// # Errors
    /// What the driver says. Where it does not even say that the stream is done, what the stream may still read is never freed.
    pub(crate) fn wait(&mut self, short: bool) -> Result<(), DriverError> {
        if self.in_flight.is_empty() {
            return Ok(());
        }
        let waited = if short {
            self.stream.synchronize()
        } else {
            self.done.record(&self.stream).and_then(|()| self.done.synchronize())
        };
        // An event may fail where the stream does not.
        if waited.is_err() && self.stream.synchronize().is_err() {
            self.in_flight.drain(..).for_each(mem::forget);
        }
        self.in_flight.clear();
        waited
    }

    /// What tells whether the largest tensor since the last call is in use, also by work of the device.
    /// With the bytes of all of them.
    pub(crate) fn in_use(&mut self) -> Option<(InUse, usize)> {
        let bytes = mem::take(&mut self.sent);
        let (_, weak) = self.largest.take()?;
        Some((Box::new(move || weak.upgrade().is_some()), bytes))
    }
}

impl Drop for CopyStream {
    fn drop(&mut self) {
        if let Err(error) = self.wait(true) {
            log::debug!("burn-pinned: cuStreamSynchronize: {error}");
        }
    }
}

/// Where a tensor's values are, on the device, and what tells how long.
fn memory<const D: usize, K: Basic>(tensor: &Tensor<D, K>) -> Result<(DeviceMemory, WeakBufferBinding), BoxError> {
    let kind = match tensor.clone().into_dispatch().kind {
        DispatchTensorKind::Autodiff(inner) => *inner,
        kind => kind,
    };
    let DispatchTensorKind::Cube(tensor) = kind else { return Err("the tensor is not of CubeCL".into()) };
    let tensor = resolved(tensor).ok_or("the tensor is of a kind that cannot be written")?;
    let weak = tensor.handle.clone().binding().downgrade();
    Ok((tensor.client.get_resource::<Server>(tensor.handle)?, weak))
}

/// The tensor behind one of Burn's fusion.
fn resolved<B, T>(tensor: BackendTensor<Fusion<B>>) -> Option<T>
where
    B: FusionBackend<FloatTensorPrimitive = T, IntTensorPrimitive = T, BoolTensorPrimitive = T>,
{
    Some(match tensor {
        BackendTensor::Float(tensor) => tensor.client.clone().resolve_tensor_float::<B>(tensor),
        BackendTensor::Int(tensor) => tensor.client.clone().resolve_tensor_int::<B>(tensor),
        BackendTensor::Bool(tensor) => tensor.client.clone().resolve_tensor_bool::<B>(tensor),
        _ => return None,
    })
}

/// The NUMA node that the kernel says the device is attached to; `None` where there is one node only.
fn numa_node(context: &CudaContext) -> Option<u32> {
    if !fs::exists("/sys/devices/system/node/node1").unwrap_or(false) {
        return None;
    }
    let mut name = [0; 32];
    // SAFETY: the driver writes at most `len` bytes, a C string, to `name`.
    unsafe { sys::cuDeviceGetPCIBusId(name.as_mut_ptr(), name.len() as i32, context.cu_device()) }.result().ok()?;
    // SAFETY: as above; the array was zeroed, so it ends.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_str().ok()?.to_lowercase();
    fs::read_to_string(format!("/sys/bus/pci/devices/{name}/numa_node")).ok()?.trim().parse().ok()
}
