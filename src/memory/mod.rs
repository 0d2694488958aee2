//! Host memory: blocks, the slots that batches are written to, and how many there may be.

mod block;
mod cgroup;
mod compact;
mod layout;
mod limits;
mod permits;
mod pool;
mod slot;

pub use crate::vocabulary::MemoryKind;
pub use block::{HeapAlloc, HostAlloc, HostBlock};
pub(crate) use cgroup::check_system;
pub(crate) use compact::{remove_rows, trim_padding};
pub use layout::Field;
pub(crate) use layout::SlotLayout;
pub(crate) use limits::Limited;
pub use limits::MemoryLimit;
pub(crate) use pool::{Limits, Patience, Permit, Pool, SPARE, TICK};
pub(crate) use slot::{Chunk, Slot, Ticket};
