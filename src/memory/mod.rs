//! Host memory: blocks, the slots that batches are written to, and how many there may be.

mod block;
mod cgroup;
mod gaps;
mod layout;
mod limits;
mod permits;
mod pool;
mod slot;

pub use block::{HeapAlloc, HostAlloc, HostBlock};
pub(crate) use cgroup::check_system;
pub(crate) use gaps::{close_gaps, close_up};
pub use layout::Field;
pub(crate) use layout::SlotLayout;
pub(crate) use limits::Limited;
pub use limits::MemoryLimit;
pub(crate) use pool::{Limits, Permit, Pool, SPARE, TICK, Wanted};
pub(crate) use slot::{Chunk, Slot, Ticket};
