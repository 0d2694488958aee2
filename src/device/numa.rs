//! Where the calling thread runs.

/// Returns the NUMA node that the calling thread runs on now, where that can be known.
pub(crate) fn node_here() -> Option<u32> {
    #[cfg(all(target_os = "linux", feature = "cuda"))]
    {
        super::linux::node_here()
    }
    #[cfg(not(all(target_os = "linux", feature = "cuda")))]
    None
}
