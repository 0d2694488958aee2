//! Host memory. Each batch is written to a slot, which is a block of host memory. A [`Field`] describes a named part of
//! every sample; the fields determine the layout of a slot. A [`MemoryLimit`] is a limit that several loaders share. A
//! [`HostAlloc`] allocates the blocks: [`HeapAlloc`] allocates ordinary memory, [`host_alloc`](crate::host_alloc)
//! returns the best allocator for a device, and your own allocator may return any [`HostBlock`]. [`MemoryKind`] says
//! whether memory is page-locked.

mod block;
mod cast;
mod cgroup;
mod column;
mod compact;
mod companion;
mod field;
#[cfg_attr(not(feature = "vision"), allow(dead_code, reason = "without images nobody writes them"))]
mod image_options;
mod layout;
mod limits;
mod pool;
mod row_size;
mod slot;

pub use crate::image_rows::Decoder;
pub use crate::vocabulary::MemoryKind;
pub use block::{HeapAlloc, HostAlloc, HostBlock};
pub use burn_augment::Size;
pub(crate) use cast::{IntegerFit, always_fits, first_beyond};
pub(crate) use cgroup::{check_system, free_memory};
pub(crate) use column::{Column, RowExtras, join_columns};
#[cfg(feature = "vision")]
pub(crate) use compact::close_up;
pub(crate) use compact::{remove_rows, spread, trim_padding};
pub(crate) use companion::with_companions;
pub use field::Field;
pub(crate) use field::Role;
pub(crate) use layout::SlotLayout;
pub(crate) use limits::LimitedAlloc;
pub use limits::MemoryLimit;
pub(crate) use pool::{Permit, Pool, PoolLimits, SPARE, Wait};
pub(crate) use row_size::{Planes, RowSize};
pub(crate) use slot::{Chunk, Slot};
