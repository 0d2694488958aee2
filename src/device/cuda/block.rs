//! A block of CUDA device memory that batches are copied to, one after the other.
#![expect(unsafe_code)]

use super::{
    context::{InContext, Server},
    event::CudaEvent,
};
use crate::device::{
    thread_end::Life,
    window::{InUse, MemoryUse},
};
use crate::{fault::BoxError, sync::locks::Mutex};
use burn::{cubecl::device_handle::DeviceHandle, tensor::StreamId};
use cubecl_runtime::{
    server::{Handle, ServerStorage},
    storage::{ComputeStorage, ManagedResource},
};
use cubecl_server::stream::WriteScoped;
use cudarc::driver::{CudaContext, DriverError, sys::CUstream};
use std::{
    fmt, mem,
    sync::{
        Arc, Weak,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed},
            fence,
        },
    },
};

/// The memory of a tensor. As long as this exists, CubeCL neither moves nor reuses the memory.
pub(in crate::device) type BlockMemory =
    ManagedResource<<<Server as ServerStorage>::Storage as ComputeStorage>::Resource>;

/// A block of device memory, for one field of a batch. CubeCL allocates it for the stream of a training loop, so the
/// loop's kernels read it without a wait between streams.
///
/// First a tensor uses it, then kernels that are queued on CubeCL's server, then launched kernels. When only launched
/// kernels are left, an event is recorded after them, and the block's address is pinned. With several GPUs the tensor
/// may also have been sent to another GPU, so another event is recorded after all such transfers. Once the events are
/// reached, the block is free. So the next copy does not need a request to the server, which may be busy.
#[derive(derive_more::Debug)]
#[debug("Block {{ bytes: {bytes}, owner: {owner:?}, .. }}")]
pub(in crate::device) struct Block {
    pub(in crate::device) memory: Handle,
    pub(in crate::device) owner: StreamId,
    pub(in crate::device) bytes: usize,
    pub(in crate::device) server: DeviceHandle<Server>,
    pub(in crate::device) context: Arc<CudaContext>,
    state: Mutex<BlockState>,
    launched: CudaEvent,
    /// Whether CubeCL may send the block's tensor to another GPU.
    has_peers: bool,
}

struct BlockState {
    stage: BlockStage,
    /// The number of batches that the block was used for.
    uses: u64,
    /// Whether CubeCL's server was requested to record the event, and has not done so yet.
    asked: bool,
    /// Pins the block's address from the event on.
    held: Option<BlockMemory>,
    /// The event after all earlier queued transfers to other GPUs. Blocks that were recorded together share it.
    sent: Option<Arc<CudaEvent>>,
    /// The stream and the thread that the last tensor was made on.
    user: Option<(StreamId, Life)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::device) enum BlockStage {
    Free,
    /// A copy, a tensor or a kernel that is not launched yet uses the block.
    Used,
    /// The event is recorded. The number counts the events of the process.
    Launched(u64),
    /// A copy or an event failed.
    Lost,
}

/// The number of events recorded.
static RECORDED: AtomicU64 = AtomicU64::new(0);

impl Block {
    /// A block that a batch is copied to for the first time. The calling thread is in the context.
    pub(in crate::device) fn new(
        memory: Handle,
        bytes: usize,
        context: &Arc<CudaContext>,
        server: &DeviceHandle<Server>,
        has_peers: bool,
    ) -> Result<Self, DriverError> {
        let launched = CudaEvent::new(context)?;
        let state = BlockState { stage: BlockStage::Used, uses: 1, asked: false, held: None, sent: None, user: None };
        let owner = memory.stream;
        let (context, server) = (Arc::clone(context), server.clone());
        Ok(Self { memory, owner, bytes, server, context, state: Mutex::new(state), launched, has_peers })
    }

    /// Takes a free block for the next batch. Returns the handle that pins its address. No earlier work still uses the
    /// memory: the event was recorded after CubeCL last moved it.
    pub(in crate::device) fn use_again(&self) -> Option<BlockMemory> {
        let mut state = self.state.lock();
        let held = state.held.take()?;
        (state.stage, state.uses, state.sent) = (BlockStage::Used, state.uses + 1, None);
        Some(held)
    }

    /// Notes that the calling thread makes a tensor of the block.
    pub(in crate::device) fn note_user(&self) {
        self.state.lock().user = Some((StreamId::current(), Life::of_this_thread()));
    }

    /// Returns the stream of the block's tensor, if the thread that made the tensor has ended. Returns it only once.
    pub(in crate::device) fn left_behind(&self) -> Option<StreamId> {
        if self.stage() != BlockStage::Used || self.has_no_tensor() {
            return None;
        }
        let user = &mut self.state.lock().user;
        user.take_if(|(_, thread)| thread.has_ended()).map(|(stream, _)| stream)
    }

    /// Returns a function that reports what uses the memory of the last batch in this block.
    pub(in crate::device) fn in_use(self: &Arc<Self>) -> InUse {
        // The function does not keep the block alive.
        let (block, uses) = (Arc::downgrade(self), self.state.lock().uses);
        Box::new(move || {
            let Some(block) = block.upgrade() else { return MemoryUse::Nothing };
            let (stage, latest) = {
                let state = block.state.lock();
                (state.stage, state.uses)
            };
            match stage {
                _ if latest != uses => MemoryUse::Nothing,
                BlockStage::Free | BlockStage::Lost => MemoryUse::Nothing,
                BlockStage::Launched(_) => MemoryUse::Work,
                // A kernel in CubeCL's queue uses it; an urgent `look` launches the kernel. While a graph is recorded, no event can be
                // recorded, so a block that nothing refers to does not count as work.
                BlockStage::Used if block.has_no_tensor() && !block.is_unshared() => MemoryUse::Work,
                BlockStage::Used => MemoryUse::Tensor,
            }
        })
    }

    /// Notes a request to the server to record the event. Returns whether this is the first one.
    pub(in crate::device) fn ask(&self) -> bool {
        !mem::replace(&mut self.state.lock().asked, true)
    }

    /// Notes that the server has handled the request for an event.
    fn answer(&self) {
        self.state.lock().asked = false;
    }

    pub(in crate::device) fn stage(&self) -> BlockStage {
        self.state.lock().stage
    }

    /// Notes that the block's events are reached.
    pub(in crate::device) fn set_free(&self) {
        self.state.lock().stage = BlockStage::Free;
    }

    pub(in crate::device) fn has_no_tensor(&self) -> bool {
        self.memory.memory.can_mut()
    }

    /// Whether nothing refers to the block: no tensor, no kernel that is queued on CubeCL's server, and no kernel of
    /// another CubeCL stream.
    pub(in crate::device) fn is_unshared(&self) -> bool {
        let no_tensor = self.has_no_tensor();
        fence(Acquire); // a tensor becomes a kernel's binding before it is dropped
        let unshared = no_tensor && !self.memory.memory.is_bound();
        fence(Acquire); // makes the effects of the last kernel's launch visible
        unshared
    }

    /// Whether the memory may go back to CubeCL, and if so, whether the block is free. CubeCL may get the memory of a
    /// block without a tensor, because it tracks its own kernels. It does not track its transfers to other GPUs.
    pub(in crate::device) fn may_go(&self) -> Option<bool> {
        match self.stage() {
            BlockStage::Free => Some(true),
            BlockStage::Lost => None,
            BlockStage::Used | BlockStage::Launched(_) => (!self.has_peers && self.has_no_tensor()).then_some(false),
        }
    }

    /// Unless something still uses the block, records the events after all kernels launched on the owner's stream, and
    /// after the transfers (`sent`), and pins the block's address. Runs on the server's thread.
    fn record(&self, server: &mut Server, sent: &mut Option<Arc<CudaEvent>>) {
        let mut state = self.state.lock();
        if state.stage != BlockStage::Used || !self.is_unshared() {
            return;
        }
        let Some(stream) = server.write_streams().try_stream_mut(&self.owner) else { return };
        let graph = &stream.capturing;
        if graph.is_recording() || (self.has_peers && graph.device().any_recording()) {
            return; // an event would become part of the graph
        }
        let stream = stream.sys;
        match self.hold(server, stream, sent) {
            Ok((held, sent)) => {
                (state.held, state.sent) = (Some(held), sent);
                state.stage = BlockStage::Launched(RECORDED.fetch_add(1, Relaxed));
            }
            Err(error) => {
                drop(state);
                self.set_lost(&error);
            }
        }
    }

    /// Pins the block's address, and records the events.
    fn hold(
        &self,
        server: &mut Server,
        stream: CUstream,
        sent: &mut Option<Arc<CudaEvent>>,
    ) -> Result<(BlockMemory, Option<Arc<CudaEvent>>), BoxError> {
        let _in_context = InContext::new(&self.context)?;
        // CubeCL may have moved the block. The event comes after that move.
        let held = server.get_resource(self.memory.clone().binding(), self.owner)?;
        // SAFETY: CubeCL keeps its streams for as long as its server.
        unsafe { self.launched.record(stream) }?;
        if self.has_peers && sent.is_none() {
            *sent = Some(Arc::new(CudaEvent::behind_transfers(server, &self.context)?));
        }
        Ok((held, sent.clone()))
    }

    /// Whether the block's events are reached. If one fails, the block is lost. The calling thread is in the context.
    pub(in crate::device) fn is_reached(&self) -> bool {
        let sent = self.state.lock().sent.clone();
        let reached = match (self.launched.is_reached(), sent) {
            (Ok(true), Some(sent)) => sent.is_reached(),
            (launched, _) => launched,
        };
        reached.unwrap_or_else(|error| {
            self.set_lost(&error);
            false
        })
    }

    /// Notes that it is not known when the block is free.
    pub(in crate::device) fn set_lost(&self, error: &dyn fmt::Display) {
        log::debug!("burn-pinned: memory of the device is not used again: {error}");
        self.state.lock().stage = BlockStage::Lost;
    }
}

/// Makes the server record the events of some blocks of a device, once it has buffered enough tasks. Until then the
/// server keeps no block alive, because their loader may end.
pub(in crate::device) fn record(blocks: &[Arc<Block>]) {
    let Some(server) = blocks.first().map(|block| block.server.clone()) else { return };
    let blocks: Vec<_> = blocks.iter().map(Arc::downgrade).collect();
    server.submit(move |server| {
        let blocks: Vec<_> = blocks.iter().filter_map(Weak::upgrade).collect();
        // Every request is marked as handled first, because the driver may make this thread panic.
        blocks.iter().for_each(|block| block.answer());
        let mut sent = None;
        blocks.iter().for_each(|block| block.record(server, &mut sent));
    });
}
