//! The device that batches go to, and the host memory that suits it.

use super::cuda::{self, Engine};
use crate::{
    fault::{BoxError, Error},
    memory::{HeapAlloc, HostAlloc},
    observe::Counters,
};
use burn::tensor::Device;
use std::sync::Arc;

/// The device that batches go to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) device: Device,
    /// Whether the device computes in host memory. Then bytes are passed on without a copy, and there are no streams.
    pub(crate) host: bool,
    /// The number of workers that could decode images instead.
    pub(crate) workers: usize,
    /// The decoder of images on the device, if images are decoded there.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only CUDA decodes"))]
    pub(super) engine: Option<Arc<Engine>>,
}

impl Target {
    /// Finds out what kind of device this is.
    pub(crate) fn of(device: Device) -> Self {
        // Burn's devices are type-erased, and their variants depend on features that this crate does not control, so
        // only the name can be checked. An unknown device is treated as an accelerator, which is slower on a CPU but
        // always correct.
        let name = format!("{:?}", device.clone().without_autodiff());
        let host = ["Flex", "NdArray", "Cube(Cpu", "LibTorch(Cpu"].iter().any(|cpu| name.contains(cpu));
        Self { device, host, workers: 0, engine: None }
    }

    /// Returns the target with a decoder of JPEGs on its device.
    ///
    /// # Errors
    /// The reason in words, if the device cannot decode them, or if the workers would be faster and decoding there is not `required`.
    pub(crate) fn decoding(self, required: bool) -> Result<Self, BoxError> {
        if let Some(engine) = cuda::engine(&self.device, if required { 0 } else { self.workers }) {
            return Ok(Self { engine: Some(engine?), ..self });
        }
        Err(format!("{:?} has no engines for JPEGs that this crate knows", self.device).into())
    }
}

/// Returns the best host memory allocator for a device: page-locked memory for CUDA with the feature `cuda`, otherwise
/// heap memory.
///
/// Loaders use it by default. Call this function for an [`allocator`](crate::PinnedDataLoaderBuilder::allocator) that
/// wraps it.
///
/// # Errors
/// [`Error::Config`] if page-locked memory is required but not available.
pub fn host_alloc(device: &Device, require_pinned: bool) -> Result<Arc<dyn HostAlloc>, Error> {
    alloc_for(device, require_pinned, &Arc::default())
}

/// As [`host_alloc`]. The loader with these counters has the warnings in its verdict.
pub(crate) fn alloc_for(
    device: &Device,
    require_pinned: bool,
    counters: &Arc<Counters>,
) -> Result<Arc<dyn HostAlloc>, Error> {
    match cuda::pinned_alloc(device, require_pinned, counters) {
        Some(Ok(alloc)) => return Ok(alloc),
        Some(Err(problem)) if require_pinned => {
            return Err(Error::config("require_pinned", problem, "leave it off to go on with ordinary memory"));
        }
        Some(Err(problem)) => counters.warn(&format!("host memory is not page-locked, which is slower: {problem}")),
        None => {}
    }
    if !require_pinned {
        return Ok(Arc::new(HeapAlloc));
    }
    let (problem, advice) = if Target::of(device.clone()).host {
        (format!("{device:?} computes in host memory, which is not page-locked"), "leave it off for this device")
    } else {
        (format!("page-locked memory for {device:?} needs CUDA"), "build with the feature `cuda` and use a CUDA device")
    };
    Err(Error::config("require_pinned", problem, advice))
}
