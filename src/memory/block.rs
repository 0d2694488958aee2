//! Blocks of host memory, and their allocators.
#![expect(unsafe_code)]

use crate::{fault::Error, vocabulary::MemoryKind};
use auto_impl::auto_impl;
use bytemuck::allocation::try_zeroed_vec;
use std::{any::Any, fmt, ptr::NonNull};

/// A block of initialised host memory, freed when dropped.
#[derive(derive_more::Debug)]
#[debug("HostBlock {{ len: {len}, kind: {kind:?}, .. }}")]
pub struct HostBlock {
    pub(super) start: NonNull<u8>,
    pub(super) len: usize,
    kind: MemoryKind,
    /// Keeps the memory alive; its `Drop` frees it.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: a block is plain memory that only the block itself refers to (the contract of `from_raw`). This holds on any
// thread.
unsafe impl Send for HostBlock {}
// SAFETY: `&HostBlock` gives no access to the memory outside this module, and `Slot` and `Chunk` keep the rules of
// borrowing.
unsafe impl Sync for HostBlock {}

impl HostBlock {
    /// Wraps memory that `owner` frees when dropped. So an allocator can supply its own memory, such as memory that
    /// another driver has page-locked.
    ///
    /// ```
    /// use burn_pinned::{memory::{HostAlloc, HostBlock, MemoryKind}, Error};
    /// use std::ptr::NonNull;
    ///
    /// #[repr(C, align(64))]
    /// #[derive(Clone, Copy)]
    /// struct Line([u8; 64]);
    ///
    /// /// Cache lines of a vector.
    /// #[derive(Debug)]
    /// struct Lines;
    ///
    /// impl HostAlloc for Lines {
    ///     fn allocate(&self, bytes: usize) -> Result<HostBlock, Error> {
    ///         let mut lines = vec![Line([0; 64]); bytes.div_ceil(64)];
    ///         let start = NonNull::from(lines.as_mut_slice()).cast::<u8>();
    ///         // SAFETY: the vector has at least `bytes` initialised bytes at a multiple of 64. It moves into the block,
    ///         // which moves no bytes, and nobody else knows them.
    ///         Ok(unsafe { HostBlock::from_raw(start, bytes, MemoryKind::Pageable, Box::new(lines)) })
    ///     }
    /// }
    ///
    /// assert_eq!(Lines.allocate(100)?.len(), 100);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// Statistics show `kind`. Use [`MemoryKind::Pinned`] only for memory that the device can read directly.
    ///
    /// # Safety
    /// `start` must be valid for reads and writes of `len` initialised bytes until `owner` is dropped, aligned to at
    /// least 64 bytes, and not used by anything else in that time. `owner` may be dropped on any thread.
    pub unsafe fn from_raw(
        start: NonNull<u8>,
        len: usize,
        kind: MemoryKind,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Self {
        Self { start, len, kind, _owner: owner }
    }

    /// Returns page-aligned, zeroed heap memory.
    fn zeroed(bytes: usize) -> Option<Self> {
        const PAGE: usize = 4096;
        // Allocates one page more, and moves the start up to the next page. Memory with small alignment comes from
        // `calloc`, which does not touch large blocks. Memory with large alignment would be zeroed here, by one thread.
        let mut owner = try_zeroed_vec::<u8>(bytes.checked_add(PAGE)?).ok()?;
        let skip = owner.as_ptr().align_offset(PAGE);
        let start = NonNull::from(&mut owner[skip..]).cast();
        // SAFETY: `skip` is less than a page, and `bytes` bytes lie behind it. `owner` frees them, and nothing else refers to it.
        Some(unsafe { Self::from_raw(start, bytes, MemoryKind::Pageable, Box::new(owner)) })
    }

    /// Returns the same block, with an extra value that is dropped after the memory.
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

    /// The kind of the memory.
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }
}

/// Allocates the memory of slots. It is called off the training path, mostly on the pin thread, so it may be slow.
///
/// Your own allocator may wrap [`HeapAlloc`] or [`host_alloc`](crate::host_alloc), for example to count or refuse
/// allocations. It may also supply its own memory with [`HostBlock::from_raw`].
#[auto_impl(Arc)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` allocates no memory for slots",
    label = "this must implement `HostAlloc`",
    note = "leave out `allocator`, or wrap `burn_pinned::memory::HeapAlloc`"
)]
pub trait HostAlloc: Send + Sync + fmt::Debug {
    /// Returns a block of exactly `bytes` bytes.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] if the block cannot be allocated.
    fn allocate(&self, bytes: usize) -> Result<HostBlock, Error>;
}

/// Allocates page-aligned heap memory.
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
