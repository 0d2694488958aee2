//! A limit on slot memory that several loaders share.

use super::block::{HostAlloc, HostBlock};
use crate::fault::Error;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// A limit on slot memory that several loaders share: give each loader a clone.
///
/// ```
/// use burn_pinned::memory::MemoryLimit;
///
/// let limit = MemoryLimit::new(512 << 20);
/// // train: builder.shared_limit(&limit), valid: builder.shared_limit(&limit)
/// assert_eq!(limit.used(), 0);
/// ```
///
/// All allocated memory counts: slots in use, idle slots and, on a CPU backend, batches that the consumer holds. A
/// loader's memory is released when the loader is dropped. A loader that gets less than it wants continues with fewer
/// slots. A loader that gets none reports [`Error::OutOfHostMemory`] in place of its batches. No loader waits for
/// another.
#[derive(Debug, Clone)]
pub struct MemoryLimit {
    bytes: usize,
    used: Arc<AtomicUsize>,
}

impl MemoryLimit {
    /// Makes a limit of this many bytes.
    pub fn new(bytes: usize) -> Self {
        Self { bytes, used: Arc::default() }
    }

    /// The limit in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes in use now.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }
}

/// Bytes taken from a limit; given back when dropped.
struct LimitShare {
    bytes: usize,
    used: Arc<AtomicUsize>,
}

impl Drop for LimitShare {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Relaxed);
    }
}

/// An allocator within a limit.
#[derive(Debug)]
pub(crate) struct LimitedAlloc {
    pub(crate) upstream: Arc<dyn HostAlloc>,
    pub(crate) limit: MemoryLimit,
}

impl HostAlloc for LimitedAlloc {
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        let MemoryLimit { bytes: limit, used } = &self.limit;
        let more = |used: usize| used.checked_add(bytes).filter(|used| used <= limit);
        if let Err(used) = used.fetch_update(Relaxed, Relaxed, more) {
            let message = format!("{used} of the {limit} bytes of the shared limit are in use");
            return Err(Error::OutOfHostMemory { kind: "host", bytes, message });
        }
        let share = LimitShare { bytes, used: Arc::clone(used) };
        Ok(self.upstream.allocate(bytes)?.with(share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::block::HeapAlloc;

    #[test]
    fn a_shared_limit_counts_what_is_there() {
        let limit = MemoryLimit::new(250);
        let alloc = || LimitedAlloc { upstream: Arc::new(HeapAlloc), limit: limit.clone() };
        let (first, second) = (alloc(), alloc());
        let (a, b) = (first.allocate(100).unwrap(), second.allocate(100).unwrap());
        assert_eq!(limit.used(), 200);
        let refused = second.allocate(51).unwrap_err().to_string();
        assert!(refused.contains("200 of the 250 bytes of the shared limit"), "{refused}");
        drop(a);
        assert_eq!(first.allocate(150).unwrap().len(), 150);
        drop(b);
        assert_eq!(limit.used(), 0);
        assert!(first.allocate(usize::MAX).is_err());
    }
}
