//! A stand-in for page-locked huge pages on systems without them.

use crate::memory::HostBlock;
use cudarc::driver::CudaContext;
use std::sync::Arc;

/// The least size of blocks that would be huge pages.
pub(super) const HUGE: usize = 2 << 20;

pub(super) fn registered(_: &Arc<CudaContext>, _: Option<u32>, _: usize) -> Result<HostBlock, String> {
    Err("they are available on Linux only".into())
}
