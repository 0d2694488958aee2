//! Huge pages near a device, which only Linux has.
#![expect(unsafe_code)]

use memmap2::{Advice, MmapMut};
use std::thread;

/// The size of a huge page on x86-64 and, with 4 KB base pages, on Arm.
pub(crate) const HUGE: usize = 2 << 20;
/// Threads that touch fresh memory: as many as saturate a host's memory.
const TOUCHERS: usize = 8;

/// An anonymous mapping whose memory starts at a huge page.
#[derive(Debug)]
pub(crate) struct Mapping {
    pages: MmapMut,
    /// Where the memory starts.
    start: usize,
    bytes: usize,
}

impl Mapping {
    /// Maps `bytes` bytes, near a NUMA node if one is given. A forked child does not inherit them.
    ///
    /// # Errors
    /// The system's error, in words.
    pub(crate) fn new(bytes: usize, node: Option<u32>) -> Result<Self, String> {
        let mapped = bytes.checked_add(HUGE).ok_or("the size overflows")?; // the extra bytes are room to align; untouched memory costs nothing
        let pages = MmapMut::map_anon(mapped).map_err(|error| format!("mmap: {error}"))?;
        let start = pages.as_ptr().align_offset(HUGE);
        // All three calls are only advice. If one is refused, pages are ordinary, on any node, or inherited by
        // children. After a fork, a write may move the page of the parent, while a device would still read the old
        // page.
        let _ = pages.advise(Advice::DontFork);
        let _ = pages.advise_range(Advice::HugePage, start, bytes);
        let mut mapping = Self { pages, start, bytes };
        if let Some(node) = node.filter(|node| *node < 64) {
            let (preferred, nodes) = (1, 1u64 << node);
            let start = mapping.as_mut_slice().as_mut_ptr();
            // SAFETY: the range lies in the mapping, and the call changes no value in it.
            unsafe { libc::syscall(libc::SYS_mbind, start, bytes, preferred, &raw const nodes, 64u64, 0) };
        }
        Ok(mapping)
    }

    /// Returns the memory, which is 0 at first.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.pages[self.start..][..self.bytes]
    }

    /// Makes the pages exist by writing zeros to them, in parallel. Call it before the memory is handed out.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
        let start = mapping.as_mut_slice().as_mut_ptr();
        assert_eq!(start.align_offset(HUGE), 0);
        assert!(mapping.as_mut_slice().iter().all(|byte| *byte == 0));
        assert_eq!(mapping.as_mut_slice().len(), 3 * HUGE + 5);
        for at in [0, 3 * HUGE + 4] {
            let flags = flags(start as usize + at);
            assert!(flags.split_whitespace().any(|flag| flag == "dc"), "a fork copies it: {flags}");
        }
    }
}
