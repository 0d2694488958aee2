//! Host memory that is written by many workers at once, then frozen, then recycled.
//!
//! A [`Slot`] has one owner at a time. [`Slot::split`] trades it for [`Chunk`]s with disjoint rows, one to each worker;
//! the worker that finishes last gets the slot back; [`Slot::freeze`] makes it shared bytes that nobody can write. Dropping
//! a slot in any state gives its memory back to where it came from. Writing after freezing does not compile:
//! `freeze` takes the slot.
//!
//! This file, `linux.rs` and `cuda_*.rs` hold all the `unsafe` of the crate.
#![expect(unsafe_code)]

use super::block::HostBlock;
use super::layout::SlotLayout;
use crate::vocabulary::MemoryKind;
use std::{
    fmt,
    ops::Range,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

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

    /// The permit that it holds.
    pub(crate) fn permit(&self) -> Option<Ticket> {
        self.permit
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
    #[inline(always)] // so that a value of known size needs no call
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
mod tests;
