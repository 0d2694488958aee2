//! Host memory that is written by many workers at once, then frozen, then recycled.
//!
//! A [`Slot`] has one owner at a time. [`Slot::split`] trades it for [`Chunk`]s with disjoint rows, one for each
//! worker. The worker that finishes last gets the slot back. [`Slot::freeze`] turns the slot into shared read-only
//! bytes. Writing after that does not compile, because `freeze` consumes the slot. Dropping a slot in any state returns
//! its memory to its pool.
//!
//! `src/README.md` lists the files with `unsafe`.
#![expect(unsafe_code)]

use super::{block::HostBlock, layout::SlotLayout};
use crate::vocabulary::MemoryKind;
use std::{
    mem,
    ops::Range,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

/// Whether a permit is held. All holders of a permit share this flag, and only the first of them gives the permit back.
#[derive(Debug, Clone)]
pub(crate) struct PermitFlag(Arc<AtomicBool>);

impl PermitFlag {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    /// Marks the permit as given back; returns whether it was held until now.
    pub(crate) fn let_go(&self) -> bool {
        self.0.swap(false, Relaxed)
    }
}

/// Where a slot returns to when it is dropped: the pool.
pub(crate) trait SlotHome: Send + Sync {
    /// Takes back a slot's memory, and its permit too, unless the two were [separated](Slot::detach) before.
    fn give_back(&self, block: HostBlock, permit: Option<&PermitFlag>);
    /// Notes that `bytes` bytes no longer belong to a permit.
    fn detach(&self, bytes: usize);
    /// Lets another batch have a permit, if a slot of `bytes` bytes still holds it: that memory may never come back.
    fn lose(&self, permit: &PermitFlag, bytes: usize);
}

/// A slot with one owner.
#[derive(derive_more::Debug)]
pub(crate) struct Slot {
    /// Taken only by `drop` and `keep_for_ever`.
    block: Option<HostBlock>,
    #[debug(skip)]
    home: Arc<dyn SlotHome>,
    permit: Option<PermitFlag>,
}

impl Slot {
    /// Makes a slot that holds a permit of `home`.
    pub(crate) fn new(block: HostBlock, home: Arc<dyn SlotHome>, permit: PermitFlag) -> Self {
        Self { block: Some(block), home, permit: Some(permit) }
    }

    #[inline]
    fn span(&self) -> (NonNull<u8>, usize) {
        self.block.as_ref().map_or((NonNull::dangling(), 0), |block| (block.start, block.len))
    }

    pub(crate) fn kind(&self) -> MemoryKind {
        self.block.as_ref().map_or(MemoryKind::Pageable, HostBlock::kind)
    }

    /// Returns a function that lets another batch have the slot's permit, in case the slot does not come back.
    pub(crate) fn give_up(&self) -> impl FnOnce() + use<> {
        let (home, permit, bytes) = (Arc::clone(&self.home), self.permit.clone(), self.span().1);
        move || permit.iter().for_each(|permit| home.lose(permit, bytes))
    }

    /// Separates the memory from its permit, and returns the permit. From now on the caller is responsible for the
    /// permit, and the holder of the bytes owns the memory.
    pub(crate) fn detach(&mut self) -> Option<PermitFlag> {
        let permit = self.permit.take()?;
        self.home.detach(self.span().1);
        Some(permit)
    }

    /// Never frees the memory, because a device may still read it. Another batch gets the permit.
    pub(crate) fn keep_for_ever(&mut self) {
        (self.give_up())();
        mem::forget(self.block.take());
    }

    /// Returns all of the memory.
    pub(crate) fn as_slice(&self) -> &[u8] {
        let (start, len) = self.span();
        // SAFETY: `start..start + len` is initialised and lives as long as `self.block`. `Chunk` never lends the slot
        // in its `Arc`. So a `&Slot` always comes from the only owner, and nothing writes to the memory.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }

    /// Returns all of the memory, for writing.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        let (start, len) = self.span();
        // SAFETY: as in `as_slice`, and `&mut self` comes from the only owner.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
    }

    /// Trades the slot for chunks of at most `chunk` rows each, which may go to different threads.
    ///
    /// # Panics
    /// If the slot is smaller than the layout, or the layout has fewer than `rows` rows. Either is a bug in this crate.
    pub(crate) fn split(self, layout: &Arc<SlotLayout>, rows: usize, chunk: usize) -> Vec<Chunk> {
        assert!(self.span().1 >= layout.bytes() && rows <= layout.rows(), "a slot is as large as its layout");
        let slot = Arc::new(SplitSlot { slot: self, unfinished: AtomicUsize::new(rows.div_ceil(chunk.max(1))) });
        (0..rows)
            .step_by(chunk.max(1))
            .map(|first| Chunk {
                slot: Arc::clone(&slot),
                layout: Arc::clone(layout),
                rows: first..rows.min(first + chunk.max(1)),
            })
            .collect()
    }

    /// Turns the slot into shared, read-only bytes. The memory goes back to the pool when the last clone or slice of
    /// them is dropped.
    pub(crate) fn freeze(self) -> bytes::Bytes {
        bytes::Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Slot {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.home.give_back(block, self.permit.as_ref());
        }
    }
}

/// A slot while chunks hold its rows.
#[derive(Debug)]
struct SplitSlot {
    slot: Slot,
    unfinished: AtomicUsize,
}

/// Some rows of a slot. Only this chunk may touch them.
#[derive(Debug)]
pub(crate) struct Chunk {
    slot: Arc<SplitSlot>,
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

    /// Returns the bytes of one field of one row. They still hold values of an earlier batch.
    ///
    /// # Panics
    /// If the row is not in this chunk, which is a bug in this crate.
    #[inline]
    pub(crate) fn bytes_mut(&mut self, field: usize, row: usize) -> &mut [u8] {
        assert!(self.rows.contains(&row), "a chunk writes its own rows alone");
        let len = self.layout.row_bytes(field);
        let (start, _) = self.slot.slot.span();
        // SAFETY: `split` checked that the layout lies within the slot. Fields of a layout do not overlap, rows of a
        // field do not overlap, and chunks have disjoint rows. So these bytes belong to this chunk only. `&mut self`
        // allows one borrow at a time. The `Arc` keeps the memory alive. Nobody reads the slot as a whole before the
        // last chunk is gone (`finish`).
        unsafe {
            let start = start.add(self.layout.offset(field) + row * len);
            std::slice::from_raw_parts_mut(start.as_ptr(), len)
        }
    }

    /// Copies `bytes` to the start of one field of one row.
    ///
    /// # Panics
    /// If the row is not in this chunk, or is shorter than `bytes`. Either is a bug in this crate.
    #[inline(always)] // so that a value of known size needs no call
    pub(crate) fn copy(&mut self, field: usize, row: usize, bytes: &[u8]) {
        self.bytes_mut(field, row)[..bytes.len()].copy_from_slice(bytes);
    }

    /// Ends the writing of this chunk. The chunk that finishes last gets the slot. If any chunk was dropped unfinished,
    /// no chunk gets the slot, and its memory goes back to the pool.
    pub(crate) fn finish(self) -> Option<Slot> {
        self.slot.unfinished.fetch_sub(1, Relaxed);
        let shared = Arc::into_inner(self.slot)?; // all writes of all chunks happen before this
        (shared.unfinished.into_inner() == 0).then_some(shared.slot)
    }
}

#[cfg(test)]
mod tests;
