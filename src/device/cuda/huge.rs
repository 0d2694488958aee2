//! Huge pages that are page-locked.
#![expect(unsafe_code)]

use super::context::{InContext, PORTABLE};
use crate::{device::linux::Mapping, memory::HostBlock, vocabulary::MemoryKind};
use cudarc::driver::{CudaContext, sys};
use std::{ffi::c_void, ptr::NonNull, sync::Arc};

pub(super) use crate::device::linux::HUGE;

/// Returns page-locked huge pages near the device: mapped, touched and then registered.
pub(super) fn registered(context: &Arc<CudaContext>, node: Option<u32>, bytes: usize) -> Result<HostBlock, String> {
    let mut mapping = Mapping::new(bytes, node)?;
    mapping.touch();
    let _in_context = InContext::new(context).map_err(|error| error.to_string())?;
    let start = mapping.as_mut_slice().as_mut_ptr().cast::<c_void>();
    // SAFETY: the range is mapped, and stays so until `RegisteredMemory` has unregistered it.
    unsafe { sys::cuMemHostRegister_v2(start, bytes, PORTABLE) }.result().map_err(|error| error.to_string())?;
    let start = NonNull::from(mapping.as_mut_slice()).cast();
    let owner = RegisteredMemory { context: Arc::clone(context), mapping };
    // SAFETY: the mapping holds `bytes` zeroed bytes at a multiple of the huge page, lives until `owner` is
    // dropped, and is known to nobody else.
    Ok(unsafe { HostBlock::from_raw(start, bytes, MemoryKind::PinnedHuge, Box::new(owner)) })
}

/// A mapping while the driver has its pages locked.
#[derive(Debug)]
struct RegisteredMemory {
    context: Arc<CudaContext>,
    mapping: Mapping,
}

impl Drop for RegisteredMemory {
    fn drop(&mut self) {
        let start = self.mapping.as_mut_slice().as_mut_ptr().cast::<c_void>();
        // SAFETY: registered in `registered`, and unregistered only here, before the mapping goes.
        let done =
            InContext::new(&self.context).and_then(|_in_context| unsafe { sys::cuMemHostUnregister(start) }.result());
        if let Err(error) = done {
            log::debug!("burn-pinned: cuMemHostUnregister: {error}"); // at the end of a process the driver may be gone
        }
    }
}
