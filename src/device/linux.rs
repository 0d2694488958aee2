//! What only Linux has: huge pages near a device.
#![expect(unsafe_code)]

use std::{ffi::c_void, fs, ptr::NonNull, slice, thread};

/// The size of a huge page on x86-64 and, with 4 KB base pages, on Arm.
pub(crate) const HUGE: usize = 2 << 20;
/// Threads that touch fresh memory: as many as saturate a host's memory.
const TOUCHERS: usize = 8;

/// Returns the soft limit on locked memory, for messages. By itself it does not limit what a CUDA driver locks,
/// but some systems make it do so.
#[cfg(feature = "cuda")]
pub(crate) fn locked_memory() -> Option<String> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    line.split_whitespace().next().map(Into::into)
}

/// An anonymous mapping that starts at a huge page.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<c_void>,
    mapped: usize,
    /// The start of the memory: a multiple of [`HUGE`].
    pub(crate) start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process; any thread may touch or unmap it.
unsafe impl Send for Mapping {}
// SAFETY: `&Mapping` only tells where the memory is.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` bytes, near a NUMA node if one is named. A child of a fork does not get them.
    ///
    /// # Errors
    /// The system's error, in words.
    pub(crate) fn new(bytes: usize, node: Option<u32>) -> Result<Self, String> {
        let mapped = bytes.checked_add(HUGE).ok_or("the size overflows")?; // room to align; untouched memory is free
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), mapped, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(format!("mmap: {}", std::io::Error::last_os_error()));
        }
        let base = NonNull::new(base).ok_or("mmap gave no address")?;
        let skip = base.as_ptr().cast::<u8>().align_offset(HUGE);
        // SAFETY: `skip` is less than HUGE, and the mapping is longer than `bytes` by HUGE.
        let start = unsafe { base.cast::<u8>().add(skip) };
        // SAFETY: the ranges lie in the mapping. All three calls are advice. A refusal leaves ordinary pages, pages on
        // any node, or pages that a child gets.
        unsafe {
            // A write after a fork may move the page of the parent. A device would go on reading the old page.
            libc::madvise(base.as_ptr(), mapped, libc::MADV_DONTFORK);
            libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
            if let Some(node) = node.filter(|node| *node < 64) {
                let (preferred, nodes) = (1, 1u64 << node);
                libc::syscall(libc::SYS_mbind, start.as_ptr(), bytes, preferred, &raw const nodes, 64u64, 0);
            }
        }
        Ok(Self { base, mapped, start, bytes })
    }

    /// Returns the memory.
    fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has this many bytes, which are 0 at first. It is this one's alone until it is handed out
        // with its owner, and then nobody has `&mut Mapping`.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Makes the pages exist, in parallel, by zeros. Call it before the memory is handed out.
    pub(crate) fn touch(&mut self) {
        let part = self.bytes.div_ceil(TOUCHERS).next_multiple_of(HUGE);
        thread::scope(|scope| {
            for pages in self.as_mut_slice().chunks_mut(part) {
                // If a thread cannot be started, its pages are left to `cuMemHostRegister`.
                let _ = thread::Builder::new().name("bp-touch".into()).spawn_scoped(scope, || pages.fill(0));
            }
        });
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and unmapped only here. Whoever used it is gone.
        unsafe { libc::munmap(self.base.as_ptr(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kernel's flags of the mapping at an address.
    fn flags(address: usize) -> String {
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = maps.lines().skip_while(|line| {
            let range = line.split_whitespace().next().and_then(|range| range.split_once('-'));
            let number = |text| usize::from_str_radix(text, 16).ok();
            !range.is_some_and(|(from, to)| number(from) <= Some(address) && Some(address) < number(to))
        });
        lines.find_map(|line| line.strip_prefix("VmFlags:")).unwrap().to_string()
    }

    #[test]
    fn a_mapping_starts_at_a_huge_page_and_no_child_gets_it() {
        let mut mapping = Mapping::new(3 * HUGE + 5, None).unwrap();
        mapping.touch();
        let start = mapping.start.as_ptr();
        assert_eq!(start.align_offset(HUGE), 0);
        assert!(mapping.as_mut_slice().iter().all(|byte| *byte == 0));
        assert_eq!(mapping.as_mut_slice().len(), 3 * HUGE + 5);
        for at in [0, 3 * HUGE + 4] {
            let flags = flags(start as usize + at);
            assert!(flags.split_whitespace().any(|flag| flag == "dc"), "a fork copies it: {flags}");
        }
    }
}
