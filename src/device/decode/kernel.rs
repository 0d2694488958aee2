//! The kernels that make the images of a batch from decoded pictures (`resample.cu`), compiled by NVRTC at run time.
//!
//! They do not use CubeCL, which launches on the stream of a thread, behind the step. These kernels run beside the
//! step, on the stream that copies.
#![expect(unsafe_code)]

use crate::{device::cuda::context::InContext, fault::BoxError};
use cudarc::{
    driver::{
        CudaContext, result,
        sys::{CUdevice_attribute, CUdeviceptr, CUfunction, CUmodule, CUstream},
    },
    nvrtc::{self, CompileOptions},
};
use std::{
    ffi::{CStr, CString, c_void},
    sync::Arc,
};

/// The threads of a block. A block makes one row of an image.
const THREADS: u32 = 256;

/// The kernels, loaded on a device.
pub(super) struct Kernel {
    module: CUmodule,
    resample: CUfunction,
    finish: CUfunction,
    context: Arc<CudaContext>,
}

// SAFETY: modules and functions of CUDA may be used from any thread that is in their context.
unsafe impl Send for Kernel {}
// SAFETY: as above; launches of several threads do not disturb each other.
unsafe impl Sync for Kernel {}

/// The addresses and sizes that a launch needs. All addresses are on the device.
pub(super) struct Launch {
    /// An entry for each image.
    pub(super) table: CUdeviceptr,
    /// The value of each byte, for each channel.
    pub(super) values: CUdeviceptr,
    /// Bytes of a value.
    pub(super) size: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) images: u32,
    /// Columns of the widest part.
    pub(super) widest: u32,
    /// Whether an image has a contrast.
    pub(super) contrast: bool,
    pub(super) out: CUdeviceptr,
}

impl Kernel {
    /// Compiles the kernels for the device. The calling thread is in the context.
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Self, BoxError> {
        // SAFETY: it only tries to load the library, which has no unsound initialisers.
        if !unsafe { nvrtc::sys::is_culib_present() } {
            return Err("NVRTC was not found; it comes with the CUDA toolkit".into());
        }
        let major = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let options = CompileOptions {
            options: vec![format!("--gpu-architecture=compute_{major}{minor}")],
            ..CompileOptions::default()
        };
        let ptx = nvrtc::compile_ptx_with_opts(include_str!("resample.cu"), options);
        let source = CString::new(ptx.map_err(|error| format!("NVRTC: {error:?}"))?.to_src())?;
        // SAFETY: the image is PTX, ended by a 0. The functions are in it.
        let (module, resample, finish) = unsafe {
            let module = result::module::load_data(source.as_ptr().cast())?;
            let function = |name: &CStr| result::module::get_function(module, name.into());
            (module, function(c"resample")?, function(c"finish")?)
        };
        Ok(Self { module, resample, finish, context: Arc::clone(context) })
    }

    /// Launches the kernels on a stream.
    ///
    /// # Safety
    /// The calling thread is in the context. `table` has `images` entries, whose parts lie within their pictures and
    /// are no wider than `widest`; those with a contrast have room for the bytes of their image. `values` has 3 x 256
    /// values, and `out` has room for the images. Nobody else changes any of it until the kernels are done.
    pub(super) unsafe fn launch(&self, launch: &Launch, stream: CUstream) -> Result<(), BoxError> {
        let Launch { mut table, mut values, mut size, mut width, mut height, images, widest, contrast, mut out } =
            *launch;
        let mut parameters: [*mut c_void; 6] = [
            (&raw mut table).cast(),
            (&raw mut values).cast(),
            (&raw mut size).cast(),
            (&raw mut width).cast(),
            (&raw mut height).cast(),
            (&raw mut out).cast(),
        ];
        let (grid, block) = ((height, images, 1), (THREADS, 1, 1));
        // SAFETY: both kernels have these parameters. The caller vouches for what they point to.
        unsafe {
            result::launch_kernel(self.resample, grid, block, 3 * widest, stream, &mut parameters)?;
            if contrast {
                result::launch_kernel(self.finish, grid, block, 0, stream, &mut parameters)?;
            }
        }
        Ok(())
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let unload = |_in_context| {
            // SAFETY: loaded in `new`, and unloaded only here. Whoever launched has waited.
            unsafe { result::module::unload(self.module) }
        };
        if let Err(error) = InContext::new(&self.context).and_then(unload) {
            log::debug!("burn-pinned: an error at the end of a kernel: {error}");
        }
    }
}
