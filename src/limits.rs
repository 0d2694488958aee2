//! What a loader may take of the machine's memory: limits that loaders share, and those that the system sets.

use crate::{
    error::Error,
    slot::{HostAlloc, HostBlock},
};
use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// A limit on slot memory for several loaders together: give each of them a clone.
///
/// ```
/// use burn_pinned::MemoryLimit;
///
/// let limit = MemoryLimit::new(512 << 20);
/// // train: builder.shared_limit(&limit), valid: builder.shared_limit(&limit)
/// assert_eq!(limit.used(), 0);
/// ```
///
/// What counts is memory that is there: slots in use, slots that wait for their next batch, and, on a CPU backend, batches that the
/// consumer holds. It comes back when the loader is dropped. A loader that gets less than it wants goes on with fewer slots; one
/// that gets none reports [`Error::OutOfHostMemory`] at its batches. Nothing waits for another loader.
#[derive(Debug, Clone)]
pub struct MemoryLimit {
    bytes: usize,
    used: Arc<AtomicUsize>,
}

impl MemoryLimit {
    /// A limit of so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self { bytes, used: Arc::default() }
    }

    /// The limit.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes in use now.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    fn take(&self, bytes: usize) -> Option<Taken> {
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.bytes);
        self.used.fetch_update(Relaxed, Relaxed, more).ok()?;
        Some(Taken { bytes, used: Arc::clone(&self.used) })
    }
}

/// Bytes of a limit; given back when dropped.
struct Taken {
    bytes: usize,
    used: Arc<AtomicUsize>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Relaxed);
    }
}

/// An allocator within a limit.
#[derive(Debug)]
pub(crate) struct Limited {
    pub(crate) upstream: Arc<dyn HostAlloc>,
    pub(crate) limit: MemoryLimit,
}

impl HostAlloc for Limited {
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        let Some(taken) = self.limit.take(bytes) else {
            let message =
                format!("{} of the {} bytes of the shared limit are in use", self.limit.used(), self.limit.bytes);
            return Err(Error::OutOfHostMemory { kind: "host", bytes, message });
        };
        Ok(self.upstream.allocate(bytes)?.with(taken))
    }
}

/// Refuses slots that the process's control group can never hold, which would end it; warns where they only do not fit now.
pub(crate) fn check_system(bytes: usize) -> Result<(), Error> {
    let Some(group) = Group::read(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")) else { return Ok(()) };
    let Group { max, used } = group;
    if bytes as u64 > max {
        let problem = format!("slots of {bytes} bytes cannot fit the {max} bytes of this control group's memory.max");
        let advice = "lower `batch_size`, `prefetch` or `pinned_limit`, or raise the group's limit";
        return Err(Error::config("pinned_limit", problem, advice));
    }
    if bytes as u64 > max.saturating_sub(used) {
        log::warn!(
            "burn-pinned: slots of {bytes} bytes are to fit a control group with {max} bytes, {used} of them in use"
        );
    }
    Ok(())
}

/// The memory of a control group: the tightest on the way to the root.
#[derive(Debug, PartialEq)]
struct Group {
    max: u64,
    used: u64,
}

impl Group {
    /// `None` where there is no limit, or no second version of control groups.
    fn read(of_process: &Path, mount: &Path) -> Option<Self> {
        let groups = fs::read_to_string(of_process).ok()?;
        let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
        let group = mount.join(path.trim_start_matches('/'));
        let number = |file: &Path| fs::read_to_string(file).ok()?.trim().parse().ok();
        let limits = group.ancestors().take_while(|group| group.starts_with(mount)).filter_map(|group| {
            let max = number(&group.join("memory.max"))?; // "max" is no number, and no limit
            Some(Self { max, used: number(&group.join("memory.current")).unwrap_or(0) })
        });
        limits.min_by_key(|group| group.max.saturating_sub(group.used))
    }
}

/// The soft limit on locked memory, for messages: it does not bind what a CUDA driver locks, but some systems make it.
#[cfg(feature = "cuda")]
pub(crate) fn locked_memory() -> Option<String> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    line.split_whitespace().next().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::HeapAlloc;

    #[test]
    fn a_shared_limit_counts_what_is_there() {
        let limit = MemoryLimit::new(250);
        let alloc = || Limited { upstream: Arc::new(HeapAlloc), limit: limit.clone() };
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

    #[test]
    fn the_tightest_group_counts() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("self", "0::/a/b\n");
        let read = || Group::read(&dir.path().join("self"), &dir.path().join("fs"));
        assert_eq!(read(), None);
        write("fs/a/b/memory.max", "max\n");
        write("fs/a/memory.max", "5000\n");
        write("fs/a/memory.current", "1000\n");
        assert_eq!(read(), Some(Group { max: 5000, used: 1000 }));
        write("fs/a/b/memory.max", "4500\n");
        assert_eq!(read().map(|group| group.max), Some(5000), "4000 are free in one, 4500 in the other");
        write("self", "5:memory:/a\n");
        assert_eq!(read(), None);
    }
}
