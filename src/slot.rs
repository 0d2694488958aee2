//! Host memory that is written by many workers at once, then frozen, then recycled.
//!
//! A [`Slot`] has one owner at a time. [`Slot::split`] trades it for [`Chunk`]s with disjoint rows, one to each worker;
//! the worker that finishes last gets the slot back; [`Slot::freeze`] makes it shared bytes that nobody can write. Dropping
//! a slot in any state gives its memory back to where it came from. Writing after freezing does not compile:
//! `freeze` takes the slot.
//!
//! This file and `cuda.rs` hold all the `unsafe` of the crate.
#![expect(unsafe_code)]

use crate::{error::Error, layout::SlotLayout};
use serde::{Deserialize, Serialize};
use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    any::Any,
    fmt,
    ops::Range,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// What kind of memory a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MemoryKind {
    /// Ordinary memory, which a device can only read through a copy.
    Pageable,
    /// Page-locked memory, which a device reads at the speed of the link.
    Pinned,
    /// Page-locked huge pages, which are locked much faster.
    PinnedHuge,
}

impl MemoryKind {
    /// Whether the memory is page-locked.
    pub fn is_pinned(self) -> bool {
        self != Self::Pageable
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pageable => "pageable",
            Self::Pinned => "page-locked",
            Self::PinnedHuge => "page-locked (huge pages)",
        })
    }
}

/// A block of initialised host memory, freed when dropped.
pub struct HostBlock {
    start: NonNull<u8>,
    len: usize,
    kind: MemoryKind,
    /// Keeps the memory alive; its `Drop` frees it.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: a block is plain memory that it alone refers to (the contract of `from_raw`), whatever the thread.
unsafe impl Send for HostBlock {}
// SAFETY: `&HostBlock` gives no access to the memory outside this module, and `Slot` and `Chunk` keep the rules of borrowing.
unsafe impl Sync for HostBlock {}

impl HostBlock {
    /// Wraps memory that `owner` frees when it is dropped.
    ///
    /// # Safety
    /// `start` must be valid for reads and writes of `len` initialised bytes until `owner` is dropped, aligned to at least
    /// 64 bytes, and used by nobody else in that time.
    pub(crate) unsafe fn from_raw(
        start: NonNull<u8>,
        len: usize,
        kind: MemoryKind,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Self {
        Self { start, len, kind, _owner: owner }
    }

    /// Page-aligned zeroed memory of the heap.
    fn zeroed(bytes: usize) -> Option<Self> {
        const PAGE: usize = 4096;
        // One page more, and the start moved up to the next page: memory of small alignment comes from `calloc`, which leaves
        // large blocks untouched; aligned memory would be filled with zeroes here, by one thread.
        let layout = Layout::from_size_align(bytes.checked_add(PAGE)?, 1).ok()?;
        // SAFETY: the layout's size is at least a page.
        let owner = Heap { start: NonNull::new(unsafe { alloc_zeroed(layout) })?, layout };
        let skip = owner.start.as_ptr().align_offset(PAGE);
        // SAFETY: `skip` is below a page, and `bytes` more lie behind it. The memory is zeroed, and `owner` frees it.
        Some(unsafe { Self::from_raw(owner.start.add(skip), bytes, MemoryKind::Pageable, Box::new(owner)) })
    }

    /// The same block, with something that is dropped after its memory.
    pub(crate) fn with(self, extra: impl Any + Send + Sync) -> Self {
        Self { _owner: Box::new((self._owner, extra)), ..self }
    }

    /// The size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the block has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Which kind of memory this is.
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }
}

/// Memory of the heap.
struct Heap {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it only frees the memory, which any thread may do.
unsafe impl Send for Heap {}
// SAFETY: `&Heap` gives access to nothing.
unsafe impl Sync for Heap {}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this layout, and freed here alone.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

impl fmt::Debug for HostBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBlock").field("len", &self.len).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Where slots get their memory from. Called off the training path, mostly on the pin thread, so it may take its time.
///
/// One of your own wraps [`HeapAlloc`] or [`host_alloc`](crate::host_alloc), to count or to refuse: memory of its own it cannot
/// bring.
pub trait HostAlloc: Send + Sync + fmt::Debug {
    /// A block of exactly `bytes` bytes.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] if it cannot be had.
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error>;
}

impl<A: HostAlloc + ?Sized> HostAlloc for Arc<A> {
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        (**self).allocate(bytes)
    }
}

/// Page-aligned memory of the heap.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeapAlloc;

impl HostAlloc for HeapAlloc {
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
        HostBlock::zeroed(bytes).ok_or_else(|| Error::OutOfHostMemory {
            kind: "pageable",
            bytes,
            message: "the system refused it".into(),
        })
    }
}

/// Names a permit that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(pub(crate) u64);

/// Where a slot returns to when it is dropped: the pool.
pub(crate) trait SlotHome: Send + Sync {
    /// Takes a slot's memory back, and its permit unless the two were [parted](Slot::detach) before.
    fn give_back(&self, block: HostBlock, permit: Option<Ticket>);
    /// Notes that `bytes` bytes are no longer behind this permit.
    fn detach(&self, permit: Ticket, bytes: usize);
}

/// A slot with one owner.
pub(crate) struct Slot {
    /// Taken only by `drop`.
    block: Option<HostBlock>,
    home: Arc<dyn SlotHome>,
    permit: Option<Ticket>,
}

impl Slot {
    /// A slot that holds a permit of `home`.
    pub(crate) fn new(block: HostBlock, home: Arc<dyn SlotHome>, permit: Ticket) -> Self {
        Self { block: Some(block), home, permit: Some(permit) }
    }

    #[inline]
    fn span(&self) -> (NonNull<u8>, usize) {
        self.block.as_ref().map_or((NonNull::dangling(), 0), |block| (block.start, block.len))
    }

    pub(crate) fn kind(&self) -> MemoryKind {
        self.block.as_ref().map_or(MemoryKind::Pageable, HostBlock::kind)
    }

    /// Parts the memory from its permit, which the caller now answers for: the memory belongs to whoever holds the bytes.
    pub(crate) fn detach(&mut self) -> Option<Ticket> {
        let permit = self.permit.take()?;
        self.home.detach(permit, self.span().1);
        Some(permit)
    }

    /// All of the memory.
    pub(crate) fn as_slice(&self) -> &[u8] {
        let (start, len) = self.span();
        // SAFETY: `start..start + len` is initialised and lives as long as `self.block`. `Chunk` never lends its `Arc<Slot>`, so
        // whoever has `&Slot` has it from the only owner, and nobody writes.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }

    /// All of the memory, to write.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        let (start, len) = self.span();
        // SAFETY: as in `as_slice`, and `&mut self` comes from the only owner.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
    }

    /// Trades the slot for chunks of at most `chunk` rows each, which may go to different threads.
    ///
    /// # Panics
    /// If the slot is smaller than the layout or the layout has fewer rows: a fault of this crate.
    pub(crate) fn split(self, layout: &Arc<SlotLayout>, rows: usize, chunk: usize) -> Vec<Chunk> {
        assert!(self.span().1 >= layout.bytes() && rows <= layout.rows(), "a slot is as large as its layout");
        let slot = Arc::new(Shared { slot: self, unfinished: AtomicUsize::new(rows.div_ceil(chunk.max(1))) });
        (0..rows)
            .step_by(chunk.max(1))
            .map(|first| Chunk {
                slot: Arc::clone(&slot),
                layout: Arc::clone(layout),
                rows: first..rows.min(first + chunk.max(1)),
            })
            .collect()
    }

    /// Makes the slot shared, read-only bytes. The memory goes back when the last clone or slice of them is dropped.
    pub(crate) fn freeze(self) -> bytes::Bytes {
        struct Frozen(Slot);
        impl AsRef<[u8]> for Frozen {
            fn as_ref(&self) -> &[u8] {
                self.0.as_slice()
            }
        }
        bytes::Bytes::from_owner(Frozen(self))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.home.give_back(block, self.permit);
        }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("block", &self.block).field("permit", &self.permit).finish_non_exhaustive()
    }
}

/// A slot while its rows are out in chunks.
#[derive(Debug)]
struct Shared {
    slot: Slot,
    unfinished: AtomicUsize,
}

/// Some rows of a slot, which this chunk alone may touch.
#[derive(Debug)]
pub(crate) struct Chunk {
    slot: Arc<Shared>,
    layout: Arc<SlotLayout>,
    rows: Range<usize>,
}

impl Chunk {
    pub(crate) fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    #[inline]
    pub(crate) fn layout(&self) -> &SlotLayout {
        &self.layout
    }

    /// The bytes of one field of one row. What was there before is whatever an earlier batch left.
    ///
    /// # Panics
    /// If the row is not of this chunk: a fault of this crate.
    #[inline]
    pub(crate) fn bytes_mut(&mut self, field: usize, row: usize) -> &mut [u8] {
        assert!(self.rows.contains(&row), "a chunk writes its own rows alone");
        let len = self.layout.row_bytes(field);
        let (start, _) = self.slot.slot.span();
        // SAFETY: `split` checked that the layout lies within the slot. Fields of a layout do not overlap, rows of a field do not,
        // and chunks have disjoint rows, so these bytes are this chunk's alone; `&mut self` keeps it to one borrow at a time. The
        // `Arc` keeps the memory alive, and nobody reads the slot as a whole before the last chunk is gone (`finish`).
        unsafe {
            let start = start.add(self.layout.offset(field) + row * len);
            std::slice::from_raw_parts_mut(start.as_ptr(), len)
        }
    }

    /// Copies `bytes` to the start of one field of one row.
    ///
    /// # Panics
    /// If the row is not of this chunk, or shorter than `bytes`: a fault of this crate.
    #[inline]
    pub(crate) fn copy(&mut self, field: usize, row: usize, bytes: &[u8]) {
        let streaming = self.layout.streaming && bytes.len() >= STREAM_MIN;
        let place = &mut self.bytes_mut(field, row)[..bytes.len()];
        if streaming { copy_streaming(place, bytes) } else { place.copy_from_slice(bytes) }
    }

    /// Ends the writing of this chunk. The last one of its slot to finish gets the slot. If any chunk was dropped unfinished,
    /// none does, and the memory goes home.
    pub(crate) fn finish(self) -> Option<Slot> {
        self.slot.unfinished.fetch_sub(1, Relaxed);
        let shared = Arc::into_inner(self.slot)?; // orders what all chunks did before this
        (shared.unfinished.into_inner() == 0).then_some(shared.slot)
    }
}

/// Shorter copies are not worth the fence.
const STREAM_MIN: usize = 4096;

/// Copies past the CPU's caches: the device reads the values, no core does, and a plain store would first read the line that it
/// overwrites.
#[cfg(target_arch = "x86_64")]
fn copy_streaming(to: &mut [u8], from: &[u8]) {
    #[cfg(miri)] // which knows no streaming stores, but checks where these write
    use std::arch::x86_64::_mm_store_si128 as _mm_stream_si128;
    use std::arch::x86_64::{__m128i, _mm_loadu_si128};
    #[cfg(not(miri))]
    use std::arch::x86_64::{_mm_sfence, _mm_stream_si128};
    assert_eq!(to.len(), from.len());
    let head = to.as_ptr().align_offset(64).min(to.len());
    let (first, rest) = to.split_at_mut(head);
    first.copy_from_slice(&from[..head]);
    let lines = rest.len() / 64;
    let (body, tail) = rest.split_at_mut(lines * 64);
    tail.copy_from_slice(&from[head + lines * 64..]);
    let (source, target) = (from[head..].as_ptr().cast::<__m128i>(), body.as_mut_ptr().cast::<__m128i>());
    for at in 0..lines * 4 {
        // SAFETY: `at` counts the 16-byte words of `body`, and as many lie behind `head` in `from`; loads may be unaligned, and
        // `body` starts at a multiple of 64. SSE2 is part of x86-64.
        unsafe { _mm_stream_si128(target.add(at), _mm_loadu_si128(source.add(at))) };
    }
    // Streaming stores are not ordered with the release that hands the slot on.
    // SAFETY: SSE is part of x86-64.
    #[cfg(not(miri))]
    #[allow(unused_unsafe, reason = "safe since some version of the compiler")]
    unsafe {
        _mm_sfence()
    };
}

#[cfg(not(target_arch = "x86_64"))]
fn copy_streaming(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Field;
    use burn::tensor::DType;
    use std::sync::atomic::Ordering;

    #[derive(Default)]
    struct Home {
        blocks: AtomicUsize,
        permits: AtomicUsize,
        detached: AtomicUsize,
    }

    impl SlotHome for Home {
        fn give_back(&self, block: HostBlock, permit: Option<Ticket>) {
            assert_eq!(block.kind(), MemoryKind::Pageable);
            self.blocks.fetch_add(1, Ordering::SeqCst);
            self.permits.fetch_add(usize::from(permit == Some(Ticket(7))), Ordering::SeqCst);
        }
        fn detach(&self, permit: Ticket, bytes: usize) {
            assert!(permit == Ticket(7) && bytes != 0);
            self.detached.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn slot(layout: &SlotLayout) -> (Arc<Home>, Slot) {
        let home = Arc::new(Home::default());
        let block = HeapAlloc.allocate(layout.bytes()).unwrap();
        (Arc::clone(&home), Slot::new(block, home, Ticket(7)))
    }

    fn layout(rows: usize) -> Arc<SlotLayout> {
        let fields = vec![Field::new("x", DType::U8, [5]), Field::new("y", DType::I64, [])];
        Arc::new(SlotLayout::new(fields, rows).unwrap())
    }

    #[test]
    fn threads_write_disjoint_rows_and_the_last_gets_the_slot() {
        let layout = layout(33);
        let (home, slot) = slot(&layout);
        let chunks = slot.split(&layout, 33, 4);
        assert_eq!(chunks.len(), 9);
        let finished: Vec<Option<Slot>> = std::thread::scope(|scope| {
            let threads: Vec<_> = chunks
                .into_iter()
                .map(|mut chunk| {
                    scope.spawn(move || {
                        for row in chunk.rows() {
                            chunk.bytes_mut(0, row).fill(row as u8);
                            chunk.bytes_mut(1, row).copy_from_slice(&(row as i64).to_ne_bytes());
                        }
                        chunk.finish()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut slots: Vec<Slot> = finished.into_iter().flatten().collect();
        assert_eq!(slots.len(), 1);
        let bytes = slots.remove(0).freeze();
        for row in 0..33 {
            assert_eq!(bytes[row * 5..row * 5 + 5], [row as u8; 5]);
            let at = layout.offset(1) + row * 8;
            assert_eq!(bytes[at..at + 8], (row as i64).to_ne_bytes());
        }
        let part = bytes.slice(3..7);
        drop(bytes);
        assert_eq!(home.blocks.load(Ordering::SeqCst), 0);
        drop(part);
        assert_eq!((home.blocks.load(Ordering::SeqCst), home.permits.load(Ordering::SeqCst)), (1, 1));
    }

    #[test]
    fn streaming_copies_are_copies() {
        let from: Vec<u8> = (0..20_000u32).map(|at| (at * 31 % 251) as u8).collect();
        for (start, len) in [(0, 0), (0, 1), (3, 63), (1, 64), (5, 4096), (7, 10_001), (64, 12_800), (13, 19_987)] {
            let mut to = vec![255; 20_064];
            copy_streaming(&mut to[start..start + len], &from[..len]);
            assert_eq!(to[start..start + len], from[..len]);
            assert!(to[..start].iter().chain(&to[start + len..]).all(|byte| *byte == 255), "{start} {len}");
        }
    }

    #[test]
    fn an_abandoned_chunk_sends_the_memory_home() {
        let layout = layout(8);
        let (home, slot) = slot(&layout);
        let mut chunks = slot.split(&layout, 8, 4);
        drop(chunks.pop());
        assert_eq!(home.blocks.load(Ordering::SeqCst), 0);
        assert!(chunks.pop().unwrap().finish().is_none(), "rows that nobody wrote are not handed on");
        assert_eq!((home.blocks.load(Ordering::SeqCst), home.permits.load(Ordering::SeqCst)), (1, 1));
    }

    #[test]
    fn a_detached_slot_returns_without_its_permit() {
        let (home, mut slot) = slot(&layout(2));
        assert_eq!((slot.detach(), slot.detach()), (Some(Ticket(7)), None));
        assert_eq!(home.detached.load(Ordering::SeqCst), 1);
        drop(slot);
        assert_eq!((home.blocks.load(Ordering::SeqCst), home.permits.load(Ordering::SeqCst)), (1, 0));
    }

    #[test]
    fn heap_memory_is_page_aligned_and_zeroed() {
        for bytes in [1, 4095, 4096, 1 << 20] {
            let (_home, slot) = {
                let home = Arc::new(Home::default());
                (Arc::clone(&home), Slot::new(HeapAlloc.allocate(bytes).unwrap(), home, Ticket(7)))
            };
            assert_eq!(slot.as_slice().as_ptr() as usize % 4096, 0);
            assert!(slot.as_slice().len() == bytes && slot.as_slice().iter().all(|byte| *byte == 0));
        }
        assert!(HeapAlloc.allocate(usize::MAX / 2).is_err());
    }
}
