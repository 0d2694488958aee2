//! Memory of a CUDA device that batches are copied to, used for one batch after the other.
#![expect(unsafe_code)]

use super::{
    cuda_context::{InContext, Server},
    window::InUse,
};
use burn::{cubecl::device_handle::DeviceHandle, tensor::StreamId};
use cubecl_runtime::{
    server::{Handle, ServerStorage},
    storage::{ComputeStorage, ManagedResource},
};
use cubecl_server::stream::WriteScoped;
use cudarc::driver::{
    CudaContext, DriverError, result,
    sys::{self, CUevent, CUevent_flags, CUresult, CUstream},
};
use parking_lot::Mutex;
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

/// Memory of a tensor: while this lives, CubeCL neither moves nor reuses it.
pub(super) type DeviceMemory = ManagedResource<<<Server as ServerStorage>::Storage as ComputeStorage>::Resource>;

/// A block of device memory, for one field of a batch. CubeCL allocated it for the stream of a training loop. So the
/// loop's kernels read it without a wait between streams.
///
/// First a tensor refers to it, then kernels that are queued on CubeCL's server, then kernels that are launched. When
/// only these are left, an event is recorded behind them, and the block is held in its place. Once the event is reached
/// the block is free. So the next copy need not ask the server, which may have much to do.
pub(super) struct Block {
    pub(super) memory: Handle,
    pub(super) owner: StreamId,
    bytes: usize,
    state: Mutex<State>,
    launched: Event,
    context: Arc<CudaContext>,
    server: DeviceHandle<Server>,
}

struct Event(CUevent);

// SAFETY: an event of CUDA may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

struct State {
    stage: Stage,
    /// The number of batches that it was used for.
    uses: u64,
    /// Where it was at the last copy. CubeCL may move memory that nothing uses.
    address: Option<u64>,
    /// Whether CubeCL's server has been asked to record the event, and has not come to it.
    asked: bool,
    /// Holds it in its place from the event on.
    held: Option<DeviceMemory>,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Free,
    /// A copy, a tensor or a kernel that is not launched yet uses it.
    Used,
    /// The event is recorded, as the nth of all.
    Launched(u64),
    /// No event could be recorded.
    Lost,
}

/// The number of events recorded.
static RECORDED: AtomicU64 = AtomicU64::new(0);

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("bytes", &self.bytes).field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Block {
    pub(super) fn new(
        memory: Handle,
        bytes: usize,
        context: &Arc<CudaContext>,
        server: &DeviceHandle<Server>,
    ) -> Result<Self, DriverError> {
        let _in_context = InContext::new(context)?;
        let launched = Event(result::event::create(CUevent_flags::CU_EVENT_DISABLE_TIMING)?);
        let state = State { stage: Stage::Used, uses: 0, address: None, asked: false, held: None };
        let owner = memory.stream;
        let (context, server) = (Arc::clone(context), server.clone());
        Ok(Self { memory, owner, bytes, state: Mutex::new(state), launched, context, server })
    }

    /// Notes that a batch is copied there. Returns whether it has moved since the last one, or is new.
    pub(super) fn used(&self, address: u64) -> bool {
        let mut state = self.state.lock();
        (state.stage, state.uses) = (Stage::Used, state.uses + 1);
        state.address.replace(address) != Some(address)
    }

    /// Returns what holds a free block in its place. It is for the next copy. No work that was queued before still uses
    /// the memory: the event was recorded after CubeCL last moved it. Returns `None` for a block that was not used yet.
    pub(super) fn take_held(&self) -> Option<DeviceMemory> {
        self.state.lock().held.take()
    }

    /// Returns what tells whether the batch that it was used for last still needs it.
    pub(super) fn in_use(self: &Arc<Self>) -> InUse {
        // Whoever asks does not keep the block.
        let (block, uses) = (Arc::downgrade(self), self.state.lock().uses);
        Box::new(move || {
            block.upgrade().is_some_and(|block| {
                let state = block.state.lock();
                state.uses == uses && !matches!(state.stage, Stage::Free | Stage::Lost)
            })
        })
    }

    /// Notes that the server is asked to record the event; returns whether it was not asked before.
    fn ask(&self) -> bool {
        !mem::replace(&mut self.state.lock().asked, true)
    }

    /// Notes that the server has come to it.
    fn answer(&self) {
        self.state.lock().asked = false;
    }

    fn stage(&self) -> Stage {
        self.state.lock().stage
    }

    /// Whether no tensor refers to it, no kernel that is queued on CubeCL's server, and no kernel of another CubeCL
    /// stream.
    fn is_unshared(&self) -> bool {
        let memory = &self.memory.memory;
        let no_tensor = memory.can_mut();
        fence(Acquire); // a tensor becomes a kernel's binding before it goes
        let unshared = no_tensor && !memory.is_bound();
        fence(Acquire); // what the last kernel's launch did is seen
        unshared
    }

    /// Records the event behind all kernels that were launched on the owner's stream, and holds the block in its place,
    /// unless something else uses the block. Runs on the server's thread.
    fn record(&self, server: &mut Server) {
        let mut state = self.state.lock();
        if state.stage != Stage::Used || !self.is_unshared() {
            return;
        }
        let Some(stream) = server.write_streams().try_stream_mut(&self.owner) else { return };
        if stream.capturing.is_recording() {
            return; // the event would become a part of the graph
        }
        let stream = stream.sys;
        state.held = self.hold(server, stream);
        state.stage = match state.held {
            Some(_) => Stage::Launched(RECORDED.fetch_add(1, Relaxed)),
            None => Stage::Lost,
        };
    }

    /// Holds the block in its place, and records the event on its owner's stream.
    fn hold(&self, server: &mut Server, stream: CUstream) -> Option<DeviceMemory> {
        let lost = |error: &dyn fmt::Debug| {
            log::debug!("burn-pinned: memory of the device is not used again: {error:?}");
        };
        let _in_context = InContext::new(&self.context).inspect_err(|error| lost(error)).ok()?;
        // CubeCL may have moved it. The event comes after that move.
        let held = server.get_resource(self.memory.clone().binding(), self.owner);
        let held = held.inspect_err(|error| lost(error)).ok()?;
        // SAFETY: the event is this block's, and live. CubeCL keeps its streams for as long as its server.
        unsafe { result::event::record(self.launched.0, stream) }.inspect_err(|error| lost(error)).ok()?;
        Some(held)
    }

    /// Whether the event is reached. The calling thread is in the context.
    fn is_reached(&self) -> bool {
        // SAFETY: the event is this block's, and live.
        unsafe { sys::cuEventQuery(self.launched.0) == CUresult::CUDA_SUCCESS }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and destroyed only here. The driver frees it once its work is done.
        let destroy = |_in_context| unsafe { result::event::destroy(self.launched.0) };
        if let Err(error) = InContext::new(&self.context).and_then(destroy) {
            log::debug!("burn-pinned: an error at the end of an event: {error}");
        }
    }
}

/// The blocks of a loader that no copy is under way to.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    idle: Mutex<Vec<Arc<Block>>>,
    /// Held by the one thread that looks.
    looks: Mutex<()>,
}

impl Blocks {
    /// Returns the smallest free block of at least `bytes` bytes for the stream `owner`. Frees the memory of free blocks
    /// that are of another stream or beyond `most`.
    pub(super) fn take(&self, bytes: usize, owner: StreamId, most: usize) -> Option<Arc<Block>> {
        let mut blocks = self.idle.lock();
        let fits = |block: &Block| block.owner == owner && (bytes..=2 * bytes + SMALL).contains(&block.bytes);
        let free = blocks.iter().enumerate().filter(|(_, block)| fits(block) && block.stage() == Stage::Free);
        let best = free.min_by_key(|(_, block)| block.bytes).map(|(at, _)| at);
        let taken = best.map(|at| blocks.swap_remove(at));
        let mut kept = 0;
        blocks.retain(|block| {
            let stage = block.stage();
            kept += usize::from(stage == Stage::Free);
            match stage {
                Stage::Free => block.owner == owner && kept < most,
                Stage::Lost => false,
                Stage::Used | Stage::Launched(_) => true,
            }
        });
        taken
    }

    pub(super) fn give_back(&self, block: Arc<Block>) {
        self.idle.lock().push(block);
    }

    /// Finds out which blocks are free by now. Does not wait. If it is `urgent`, the server records the events of what
    /// was dropped at once, and else with the next tasks that it gets.
    pub(super) fn look(&self, urgent: bool) {
        let Some(_looks) = self.looks.try_lock() else { return };
        let (mut dropped, mut used, mut launched) = (None, Vec::new(), Vec::new());
        for block in self.idle.lock().iter() {
            match block.stage() {
                Stage::Launched(nth) => launched.push((nth, Arc::clone(block))),
                Stage::Used if block.is_unshared() => {
                    dropped.get_or_insert_with(|| block.server.clone());
                    if block.ask() {
                        used.push(Arc::clone(block));
                    }
                }
                _ => {}
            }
        }
        record(used);
        if let Some(server) = dropped.filter(|_| urgent) {
            server.flush_queue();
        }
        let Some(_in_context) = launched.first().and_then(|(_, block)| InContext::new(&block.context).ok()) else {
            return;
        };
        launched.sort_unstable_by_key(|(nth, _)| *nth);
        // The events of a stream are reached in their order.
        let mut waits: Option<StreamId> = None;
        for (_, block) in launched {
            if waits == Some(block.owner) {
                continue;
            }
            if block.is_reached() {
                block.state.lock().stage = Stage::Free;
            } else {
                waits = Some(block.owner);
            }
        }
    }

    /// Records the events of blocks that no tensor refers to any more, behind what was asked of CubeCL's server so far.
    /// Leaves out those that it was asked for before. Called as the next batch is used for the first time, so right
    /// behind the step before.
    pub(super) fn mark(&self) {
        let is_left =
            |block: &&Arc<Block>| block.stage() == Stage::Used && block.memory.memory.can_mut() && block.ask();
        let left = self.idle.lock().iter().filter(is_left).map(Arc::clone).collect();
        record(left); // without the lock: it may wait for the server
    }

    /// Frees the blocks once nothing uses them.
    pub(crate) fn clear(&self) {
        self.idle.lock().clear();
    }
}

/// Lets the server record the events of some blocks of a device. It does so once it has gathered enough tasks. Until
/// then it keeps none of them: their loader may end.
fn record(blocks: Vec<Arc<Block>>) {
    let Some(server) = blocks.first().map(|block| block.server.clone()) else { return };
    let blocks: Vec<_> = blocks.iter().map(Arc::downgrade).collect();
    server.submit(move |server| {
        let blocks: Vec<_> = blocks.iter().filter_map(Weak::upgrade).collect();
        // All of them first, since the driver may make this thread panic.
        blocks.iter().for_each(|block| block.answer());
        blocks.iter().for_each(|block| block.record(server));
    });
}

/// A block may be larger than a field by this number of bytes.
const SMALL: usize = 4096;
