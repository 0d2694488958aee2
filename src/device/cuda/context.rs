//! The CUDA context of a thread: set for a call, then put back.
#![expect(unsafe_code)]

use crate::sync::locks::Mutex;
use burn::{
    backend::Device as _,
    cubecl::{
        cuda::{CudaDevice, CudaRuntime},
        device_handle::DeviceHandle,
    },
    tensor::Device,
};
use cubecl_runtime::{runtime::Runtime, server::ServerUtilities};
use cudarc::driver::{
    CudaContext, DriverError,
    result::{self, ctx},
    sys::{self, CUcontext, CUstreamCaptureMode},
};
use std::{ptr, sync::Arc};

/// A flag: the memory is usable from every CUDA context of the process, and so for every device.
pub(super) const PORTABLE: u32 = 1;

/// CubeCL's server for CUDA.
pub(in crate::device) type Server = <CudaRuntime as Runtime>::Server;

/// Returns CubeCL's server of a device, and its utilities.
///
/// # Errors
/// If the server is of another kind.
pub(in crate::device) fn server(ordinal: usize) -> Result<(DeviceHandle<Server>, Arc<ServerUtilities>), &'static str> {
    let server = DeviceHandle::<Server>::new(CudaDevice::new(ordinal).to_id());
    let utilities = server.utilities().downcast::<ServerUtilities>();
    Ok((server, utilities.map_err(|_| "CubeCL's server is not as expected")?))
}

/// Returns the CUDA index of a device, if it is a CUDA device.
pub(crate) fn ordinal(device: &Device) -> Option<usize> {
    // The autodiff setting does not matter when devices are compared. No host has as many as 64.
    (0..64).find(|index| *device == Device::cuda(*index))
}

/// The contexts that were opened. They stay for the life of the process: the drop of a `CudaContext` makes the context
/// current on the thread that drops it.
static OPENED: Mutex<Vec<Arc<CudaContext>>> = Mutex::new(Vec::new());

/// As long as this exists, the calling thread is in a device's primary context. It may then allocate, lock memory and
/// wait while another thread records a CUDA graph. CubeCL records in the global mode, in which such a call of any
/// thread would otherwise fail and invalidate the graph.
///
/// `Drop` puts back what the thread had before.
pub(crate) struct InContext {
    /// The context that the thread had before, or `None`. A raw pointer also keeps the guard on its thread.
    context: Option<CUcontext>,
    mode: CUstreamCaptureMode,
}

impl InContext {
    /// Notes the calling thread's context and mode, and allows the thread these calls.
    fn relaxed() -> Result<Self, DriverError> {
        let context = ctx::get_current()?;
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the driver swaps the calling thread's mode with `mode`.
        unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) }.result()?;
        Ok(Self { context, mode })
    }

    /// Enters a context.
    ///
    /// # Errors
    /// The driver's, for example as the process ends.
    pub(crate) fn new(context: &CudaContext) -> Result<Self, DriverError> {
        let entered = Self::relaxed()?;
        context.bind_to_thread()?;
        Ok(entered)
    }

    /// Opens a device's primary context, which Burn uses too, and enters it.
    ///
    /// # Errors
    /// The reason in words, if there is no driver or no such device.
    pub(crate) fn open(ordinal: usize) -> Result<(Self, Arc<CudaContext>), String> {
        // SAFETY: it only tries to load the driver's library, which has no unsound initialisers.
        if !unsafe { sys::is_culib_present() } {
            return Err("no NVIDIA driver was found".into());
        }
        let open = || {
            result::init()?;
            let entered = Self::relaxed()?;
            let mut opened = OPENED.lock();
            if let Some(context) = opened.iter().find(|context| context.ordinal() == ordinal) {
                context.bind_to_thread()?;
                return Ok((entered, Arc::clone(context)));
            }
            let context = CudaContext::new(ordinal)?;
            opened.push(Arc::clone(&context));
            Ok((entered, context))
        };
        open().map_err(|error: DriverError| format!("CUDA device {ordinal}: {error}"))
    }
}

impl Drop for InContext {
    fn drop(&mut self) {
        // SAFETY: the context was this thread's when the guard was made, and whoever made it current keeps it alive.
        // Null means none.
        let context = unsafe { ctx::set_current(self.context.unwrap_or(ptr::null_mut())) };
        // SAFETY: the driver swaps the calling thread's mode with `self.mode`.
        let mode = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut self.mode) }.result();
        if let Err(error) = context.and(mode) {
            log::debug!("burn-pinned: a thread's CUDA context could not be put back: {error}");
        }
    }
}
