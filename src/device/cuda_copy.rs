//! Copies to a CUDA device, on a stream that CubeCL does not know, to memory that CubeCL allocated.
#![expect(unsafe_code)]

use super::{
    cuda_block::{Block, Blocks},
    cuda_context::{Entered, Server},
    cuda_tensor::TensorMaker,
    flat::{Part, Uploaded},
    window::InUse,
};
use crate::fault::BoxError;
use burn::{
    backend::Device as _,
    cubecl::{cuda::CudaDevice, device_handle::DeviceHandle},
    tensor::{Device, StreamId},
};
use cubecl_runtime::{
    server::{CaptureStatus, ServerStorage, ServerUtilities},
    storage::{ComputeStorage, ManagedResource},
};
use cubecl_server::stream::WriteScoped;
use cudarc::driver::{
    CudaContext, DriverError, result,
    sys::{self, CUevent, CUevent_flags, CUevent_wait_flags, CUresult, CUstream},
};
use std::{
    mem,
    ops::Range,
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

/// How long copies wait while a CUDA graph is recorded on their device.
const RECORDING: Duration = Duration::from_secs(30);
/// How often they check whether the recording is done.
const LOOK: Duration = Duration::from_micros(200);
/// Bytes that are copied for nothing rather than in two copies.
const GAP: usize = 4096;

/// Memory of a tensor: while this lives, CubeCL neither moves nor reuses it.
type DeviceMemory = ManagedResource<<<Server as ServerStorage>::Storage as ComputeStorage>::Resource>;

/// Copies to a device on a CUDA stream of its own.
///
/// Batches are copied to blocks of memory that stay the loader's. A block that was used before is free: all kernels that
/// read it are done. The memory of a new block may still be in use by what is queued on the CubeCL stream that it is
/// from. So the first copy comes after everything that was queued there. No thread waits for that: the copy stream waits
/// for an event, unless the other stream is idle anyway.
pub(crate) struct CopyStream {
    context: Arc<CudaContext>,
    stream: CUstream,
    /// An event on a stream of CubeCL. The copies come after it.
    allocated: CUevent,
    /// An event on the copy stream: the copies are done.
    copied: CUevent,
    server: DeviceHandle<Server>,
    maker: TensorMaker,
    blocks: Arc<Blocks>,
    /// The graphs that are recorded on the device.
    graphs: CaptureStatus,
    /// What the copies under way read, and where they write.
    in_flight: Vec<(bytes::Bytes, DeviceMemory, Arc<Block>)>,
    /// The block of the last batch, and the bytes of that batch.
    last: Option<(Arc<Block>, usize)>,
    /// The error after which no copy is started any more, since the end of one is not known.
    lost: Option<DriverError>,
}

/// A handle of the driver's, on its way to the thread of CubeCL's server.
#[derive(Clone, Copy)]
struct Sent<T>(T);

// SAFETY: streams and events of CUDA may be used from any thread. `CopyStream` destroys its own only after the closure
// that got them has returned.
unsafe impl<T> Send for Sent<T> {}

impl CopyStream {
    /// Makes a stream on the device's primary context, for copies to `blocks`.
    ///
    /// # Errors
    /// The reason in words.
    pub(crate) fn new(ordinal: usize, device: &Device, blocks: &Arc<Blocks>) -> Result<Self, BoxError> {
        let maker = TensorMaker::new(device)?;
        let (_entered, context) = Entered::open(ordinal)?;
        // cudarc's own streams would wait for the whole context.
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        let allocated = result::event::create(CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
        // A thread that waits sleeps: its core is for the workers.
        let copied = result::event::create(CUevent_flags::CU_EVENT_BLOCKING_SYNC)?;
        let server = DeviceHandle::<Server>::new(CudaDevice::new(ordinal).to_id());
        let utilities = server.utilities().downcast::<ServerUtilities>();
        let graphs = utilities.map_err(|_| "CubeCL's server is not as expected")?.captures.clone();
        let (in_flight, last, lost, blocks) = (Vec::new(), None, None, Arc::clone(blocks));
        Ok(Self { context, stream, allocated, copied, server, maker, blocks, graphs, in_flight, last, lost })
    }

    /// Starts to copy parts of `bytes` to the device, for the thread whose CubeCL stream is `consumer`. Until
    /// [`wait`](Self::wait) the values there may be anything. Blocks while a CUDA graph is recorded on the device, since
    /// nothing can be allocated then. Of blocks that nothing uses, no more are kept than make `most` in all.
    ///
    /// # Errors
    /// If the device has no memory for it, or refuses a copy. Copies that were started go on.
    pub(crate) fn start(
        &mut self,
        bytes: &bytes::Bytes,
        parts: &[Part],
        consumer: StreamId,
        most: usize,
    ) -> Result<Vec<Uploaded>, BoxError> {
        if let Some(error) = self.lost {
            return Err(error.into());
        }
        let (block, memory) = self.block(bytes.len(), consumer, most)?;
        let uploaded = parts.iter().map(|part| Uploaded::Memory(self.maker.later(&block.memory, part))).collect();
        let _entered = Entered::new(&self.context)?;
        let (to, room) = (memory.resource().ptr, memory.resource().size);
        if (room as usize) < bytes.len() {
            return Err(format!("{} bytes do not fit {room} of the device", bytes.len()).into());
        }
        self.last = Some((Arc::clone(&block), parts.iter().map(|part| part.range.len()).sum()));
        self.in_flight.push((bytes.clone(), memory, block));
        for range in joined(parts) {
            let from = &bytes[range.clone()];
            // SAFETY: `to` is the start of at least as many bytes of the device as `bytes` has. Nobody else uses the
            // block: it is free, or it is new and this stream waits for what its memory was used for before. Its tensors
            // are made after `wait`. `in_flight` keeps both ends of the copy until `wait` has seen the copy end.
            unsafe { result::memcpy_htod_async(to + range.start as u64, from, self.stream) }?;
        }
        Ok(uploaded)
    }

    /// Returns a block to copy to, with what keeps it in its place.
    fn block(&self, bytes: usize, consumer: StreamId, most: usize) -> Result<(Arc<Block>, DeviceMemory), BoxError> {
        let start = Instant::now();
        loop {
            if self.graphs.any_recording() {
                if start.elapsed() > RECORDING {
                    return Err(format!("a CUDA graph has been recorded on the device for {RECORDING:?}").into());
                }
                sleep(LOOK);
                continue;
            }
            let free = self.blocks.take(bytes, consumer, most);
            let new = || Block::new(self.maker.allocate(bytes, consumer), bytes, &self.context, &self.server);
            let block = free.map_or_else(|| new().map(Arc::new), Ok)?;
            match self.hold(&block) {
                Ok(Some(memory)) => return Ok((block, memory)),
                Ok(None) => {}
                Err(_) if self.graphs.any_recording() => {} // it began after the check above: nothing can be allocated
                Err(error) => return Err(error),
            }
        }
    }

    /// Looks up where a block is, and keeps it there. If it is new there, makes the copy stream wait for what is queued
    /// on the stream that the memory is from. Returns `None` if that one records a graph: the wait would become a part
    /// of the graph.
    fn hold(&self, block: &Arc<Block>) -> Result<Option<DeviceMemory>, BoxError> {
        let (allocated, copies) = (Sent(self.allocated), Sent(self.stream));
        let (context, block) = (Arc::clone(&self.context), Arc::clone(block));
        // This runs on the server's thread, where no recording can begin meanwhile.
        let hold = move |server: &mut Server| -> Result<Option<DeviceMemory>, BoxError> {
            let (allocated, copies) = ({ allocated }.0, { copies }.0);
            let stream = server.write_streams().try_stream_mut(&block.owner);
            if stream.ok_or("CubeCL does not know the stream of its own memory")?.capturing.is_recording() {
                return Ok(None);
            }
            let memory = server.get_resource(block.memory.clone().binding(), block.owner)?;
            if !block.used(memory.resource().ptr) {
                return Ok(Some(memory));
            }
            let stream = server.write_streams().try_stream_mut(&block.owner).ok_or("a stream of CubeCL has gone")?.sys;
            let _entered = Entered::new(&context)?;
            // SAFETY: CubeCL keeps its streams for as long as its server. The event and the copy stream are the
            // caller's, who waits for this closure. The event may be recorded again at once: a wait is for what the
            // event stood for when the wait was queued.
            unsafe {
                if sys::cuStreamQuery(stream) != CUresult::CUDA_SUCCESS {
                    result::event::record(allocated, stream)?;
                    result::stream::wait_event(copies, allocated, CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT)?;
                }
            }
            Ok(Some(memory))
        };
        self.server.submit_blocking(hold).map_err(|error| format!("CubeCL's server: {error:?}"))?
    }

    /// Waits until the copies are done, then releases what they read. If they are `short`, the thread does not sleep
    /// meanwhile.
    ///
    /// # Errors
    /// The driver's error. If the driver does not even say that the stream is done, what the stream may still read is
    /// never freed, and nothing is copied any more.
    pub(crate) fn wait(&mut self, short: bool) -> Result<(), DriverError> {
        if self.in_flight.is_empty() {
            return Ok(());
        }
        let waited = Entered::new(&self.context).and_then(|_entered| {
            // SAFETY: the stream and the event are this one's, and live.
            let waited = unsafe {
                if short {
                    result::stream::synchronize(self.stream)
                } else {
                    let recorded = result::event::record(self.copied, self.stream);
                    recorded.and_then(|()| result::event::synchronize(self.copied))
                }
            };
            // An event may fail where the stream does not.
            // SAFETY: as above.
            let done = waited.is_ok() || unsafe { result::stream::synchronize(self.stream) }.is_ok();
            if done {
                for (_, memory, block) in self.in_flight.drain(..) {
                    drop(memory);
                    self.blocks.give_back(block);
                }
            }
            waited
        });
        if let (Err(error), false) = (&waited, self.in_flight.is_empty()) {
            self.lost = Some(*error);
            self.in_flight.drain(..).for_each(mem::forget);
        }
        waited
    }

    /// Returns what tells whether the memory of the last batch is in use, also by work of the device, and the bytes of
    /// that batch.
    pub(crate) fn in_use(&mut self) -> Option<(InUse, usize)> {
        let (block, bytes) = self.last.take()?;
        Some((block.in_use(), bytes))
    }

    /// Frees the blocks once nothing uses them.
    pub(crate) fn free(&self) {
        self.blocks.clear();
    }
}

/// Returns the ranges of bytes that cover the parts: one for parts with small gaps between them.
fn joined(parts: &[Part]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for part in parts.iter().filter(|part| !part.range.is_empty()) {
        match ranges.last_mut() {
            Some(last) if (last.end..=last.end + GAP).contains(&part.range.start) => last.end = part.range.end,
            _ => ranges.push(part.range.clone()),
        }
    }
    ranges
}

impl Drop for CopyStream {
    fn drop(&mut self) {
        let waited = self.wait(true);
        let destroyed = Entered::new(&self.context).and_then(|_entered| {
            // SAFETY: made in `new`, and destroyed only here. The driver frees each once its work is done.
            unsafe {
                let events = result::event::destroy(self.allocated).and(result::event::destroy(self.copied));
                result::stream::destroy(self.stream).and(events)
            }
        });
        if let Err(error) = waited.and(destroyed) {
            log::debug!("burn-pinned: an error at the end of a copy stream: {error}");
        }
    }
}
