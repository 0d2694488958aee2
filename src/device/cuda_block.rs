//! Memory of a CUDA device that batches are copied to, used for one batch after the other.
#![expect(unsafe_code)]

use super::{
    cuda_context::{Entered, Server},
    window::InUse,
};
use burn::{cubecl::device_handle::DeviceHandle, tensor::StreamId};
use cubecl_runtime::server::Handle;
use cubecl_server::stream::WriteScoped;
use cudarc::driver::{
    CudaContext, DriverError, result,
    sys::{self, CUevent, CUevent_flags, CUresult},
};
use parking_lot::Mutex;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{Ordering::Acquire, fence},
    },
};

/// The blocks of a loader that no copy is under way to.
#[derive(Debug, Default)]
pub(crate) struct Blocks(Mutex<Vec<Arc<Block>>>);

impl Blocks {
    /// Returns a block of at least `bytes` bytes for the stream `owner` that nothing uses any more. What fits no batch
    /// of that stream is freed once nothing uses it, and so is what is beyond `most` blocks.
    pub(super) fn take(&self, bytes: usize, owner: StreamId, most: usize) -> Option<Arc<Block>> {
        let (mut taken, mut kept) = (None, 0);
        self.0.lock().retain(|block| {
            let fits = block.owner == owner && (bytes..=2 * bytes + SMALL).contains(&block.bytes);
            if !block.is_free() {
                return true;
            }
            if fits && taken.is_none() {
                taken = Some(Arc::clone(block));
                return false;
            }
            kept += 1;
            fits && kept < most
        });
        taken
    }

    pub(super) fn give_back(&self, block: Arc<Block>) {
        self.0.lock().push(block);
    }

    /// Frees the blocks once nothing uses them.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

/// A block may be larger than a batch by this number of bytes.
const SMALL: usize = 1 << 20;

/// A block of device memory. CubeCL allocated it for the stream of a training loop. So the loop's kernels read it
/// without a wait between streams.
///
/// Tensors of a batch refer to it, then kernels that are queued on CubeCL's server, then kernels that are launched. When
/// only these are left, an event is recorded behind them. Once it is reached the block is free.
pub(super) struct Block {
    pub(super) memory: Handle,
    pub(super) owner: StreamId,
    bytes: usize,
    state: Mutex<State>,
    launched: CUevent,
    context: Arc<CudaContext>,
    server: DeviceHandle<Server>,
}

// SAFETY: an event of CUDA may be used from any thread. All else in it is `Send` and `Sync`.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

struct State {
    stage: Stage,
    /// The number of batches that it was used for.
    uses: u64,
    /// Where it was at the last copy. CubeCL may move memory that nothing uses.
    address: Option<u64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Free,
    /// A copy or tensors use it.
    Used,
    /// CubeCL's server is asked to record the event.
    Asked,
    /// The event is recorded.
    Launched,
}

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
        let _entered = Entered::new(context)?;
        let launched = result::event::create(CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
        let state = State { stage: Stage::Free, uses: 0, address: None };
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

    /// Returns what tells whether the batch that it was used for last still needs it.
    pub(super) fn in_use(self: &Arc<Self>) -> InUse {
        let (block, uses) = (Arc::clone(self), self.state.lock().uses);
        Box::new(move || block.state.lock().uses == uses && !block.is_free())
    }

    /// Whether nothing uses it any more. Does not wait.
    fn is_free(self: &Arc<Self>) -> bool {
        let mut state = self.state.lock();
        if state.stage == Stage::Used && self.is_unshared() {
            state.stage = Stage::Asked;
            let block = Arc::clone(self);
            self.server.submit(move |server| block.record(server));
            self.server.flush_queue();
        }
        if state.stage == Stage::Launched && self.is_reached() {
            state.stage = Stage::Free;
        }
        state.stage == Stage::Free
    }

    /// Whether no tensor refers to it, no kernel that is queued on CubeCL's server, and no kernel of another CubeCL
    /// stream.
    fn is_unshared(&self) -> bool {
        let memory = &self.memory.memory;
        let unshared = memory.can_mut() && !memory.is_bound();
        fence(Acquire); // with the release of the last reference
        unshared
    }

    /// Records the event behind all kernels that were launched on the owner's stream. Runs on the server's thread.
    fn record(&self, server: &mut Server) {
        let stage = match server.write_streams().try_stream_mut(&self.owner) {
            None => Stage::Free,                                            // no kernel has run there
            Some(stream) if stream.capturing.is_recording() => Stage::Used, // the event would become a part of the graph
            Some(stream) => {
                // SAFETY: the event is this block's, and live. CubeCL keeps its streams for as long as its server.
                let record = |_entered| unsafe { result::event::record(self.launched, stream.sys) };
                match Entered::new(&self.context).and_then(record) {
                    Ok(()) => Stage::Launched,
                    Err(error) => {
                        log::debug!("burn-pinned: memory of the device is not used again: {error}");
                        Stage::Asked
                    }
                }
            }
        };
        self.state.lock().stage = stage;
    }

    fn is_reached(&self) -> bool {
        // SAFETY: the event is this block's, and live.
        let reached = |_entered| unsafe { sys::cuEventQuery(self.launched) };
        Entered::new(&self.context).map(reached) == Ok(CUresult::CUDA_SUCCESS)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and destroyed only here. The driver frees it once its work is done.
        let destroy = |_entered| unsafe { result::event::destroy(self.launched) };
        if let Err(error) = Entered::new(&self.context).and_then(destroy) {
            log::debug!("burn-pinned: the end of an event: {error}");
        }
    }
}
