//! Copies to a CUDA device, on a stream that CubeCL does not know, to memory that CubeCL allocated.
#![expect(unsafe_code)]

use super::{
    block::{Block, BlockMemory},
    blocks::DeviceBlocks,
    context::{InContext, Server, server},
    event::{CudaEvent, has_peers},
    tensor::{PendingTasks, TensorMaker},
};
use crate::device::{
    decode::{Engine, Failure, Images},
    destination::Destination,
    flat::{DeviceTensor, FlatTensor, Redo},
    window::InUse,
};
use crate::{fault::BoxError, image_rows::LongFiles};
use burn::{
    cubecl::device_handle::DeviceHandle,
    tensor::{Device, StreamId},
};
use cubecl_runtime::server::{
    Handle, MemoryLayoutDescriptor, MemoryLayoutStrategy, Server as _, ServerStorage, ServerUtilities,
};
use cubecl_server::stream::WriteScoped;
use cudarc::driver::{
    CudaContext, DriverError, result,
    sys::{self, CUevent, CUevent_flags, CUevent_wait_flags, CUresult, CUstream},
};
use std::{
    mem,
    sync::{Arc, OnceLock},
    thread::sleep,
    time::{Duration, Instant},
};

/// How long copies wait while a CUDA graph is recorded on their device.
const RECORDING: Duration = Duration::from_secs(30);
/// How often they check whether the recording is done.
const LOOK: Duration = Duration::from_micros(200);

/// Blocks with pinned addresses.
type HeldBlocks = Vec<(Arc<Block>, BlockMemory)>;

/// Copies to a device on a CUDA stream of its own.
///
/// Batches are copied to blocks of memory that stay the loader's. A block that was used before is free: all kernels
/// that read it are done. Work that is queued on its CubeCL stream may still use the memory of a new block, so the
/// first copy runs after that work. No thread waits for it: the copy stream waits for an event, unless the CubeCL
/// stream is idle anyway.
pub(crate) struct CopyStream {
    context: Arc<CudaContext>,
    stream: CUstream,
    /// An event on a stream of CubeCL, before the copies.
    allocated: CUevent,
    /// An event on the copy stream, behind the copies.
    copied: CUevent,
    server: DeviceHandle<Server>,
    device: Device,
    /// Makes tensors. It is made with the first batch.
    maker: Option<TensorMaker>,
    pending: Arc<OnceLock<PendingTasks>>,
    blocks: Arc<DeviceBlocks>,
    /// The utilities of CubeCL's server: its memory layout, and the state of graph recordings on the device.
    utilities: Arc<ServerUtilities>,
    /// The bytes that running copies read, and the blocks that they write to.
    in_flight: Vec<(bytes::Bytes, BlockMemory, Arc<Block>)>,
    /// The largest block of the last batch, and the bytes of that batch.
    last: Option<(Arc<Block>, usize)>,
    /// The error of a wait for a copy, whose end is then not known. After it no copy is started any more.
    lost: Option<DriverError>,
    /// The thread stays in the context for as long as it has the stream.
    _in_context: InContext,
}

/// A handle of the driver's, on its way to the thread of CubeCL's server.
#[derive(Clone, Copy)]
struct DriverHandle<T>(T);

// SAFETY: streams and events of CUDA may be used from any thread. `CopyStream` destroys its own only after the closure
// that got them has returned.
unsafe impl Send for DriverHandle<CUevent> {}
// SAFETY: as above.
unsafe impl Send for DriverHandle<CUstream> {}

impl CopyStream {
    /// Makes a stream on the device's primary context, for copies to `blocks`.
    ///
    /// # Errors
    /// The reason in words.
    pub(crate) fn new(
        ordinal: usize,
        device: &Device,
        blocks: &Arc<DeviceBlocks>,
        pending: &Arc<OnceLock<PendingTasks>>,
    ) -> Result<Self, BoxError> {
        let (entered, context) = InContext::open(ordinal)?;
        // cudarc's own streams would wait for the whole context.
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        let allocated = result::event::create(CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
        // A thread that waits sleeps: its core is for the workers.
        let copied = result::event::create(CUevent_flags::CU_EVENT_BLOCKING_SYNC)?;
        let (server, utilities) = server(ordinal)?;
        Ok(Self {
            context,
            stream,
            allocated,
            copied,
            server,
            device: device.clone(),
            maker: None,
            pending: Arc::clone(pending),
            blocks: Arc::clone(blocks),
            utilities,
            in_flight: Vec::new(),
            last: None,
            lost: None,
            _in_context: entered,
        })
    }

    /// Starts to copy parts of `bytes` to the device. The values there are undefined until [`wait`](Self::wait). Blocks
    /// while a CUDA graph is recorded on the device, because nothing can be allocated then. If a recording begins
    /// later, copies to pinned blocks continue, because they allocate nothing.
    ///
    /// # Errors
    /// If the device has no memory for the tensors, or refuses a copy. Copies that were started continue.
    pub(crate) fn start(
        &mut self,
        bytes: &bytes::Bytes,
        parts: &[FlatTensor],
        destination: Destination,
    ) -> Result<Vec<DeviceTensor>, BoxError> {
        if let Some(error) = self.lost {
            return Err(error.into());
        }
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let (maker, blocks) = self.take_blocks(parts, destination)?;
        let uploaded = parts.iter().zip(&blocks).map(|(part, (block, _))| maker.later(block, part, &self.blocks));
        let uploaded = uploaded.collect();
        self.note(parts, &blocks);
        for (part, (block, memory)) in parts.iter().zip(blocks) {
            let from = bytes.slice(part.range.clone());
            let (to, room) = (memory.resource().ptr, memory.resource().size);
            if (room as usize) < from.len() {
                return Err(format!("{} bytes do not fit into {room} bytes of device memory", from.len()).into());
            }
            self.in_flight.push((from, memory, block));
            let Some((from, ..)) = self.in_flight.last().filter(|(from, ..)| !from.is_empty()) else { continue };
            // SAFETY: `to` is the start of at least as many bytes of the device as are copied. Nobody else uses the
            // block: it was free, or it is new and this stream waits for what its memory was used for before. Its tensor
            // is made after `wait`. `in_flight` keeps both ends of the copy until `wait` has seen the copy end.
            unsafe { result::memcpy_htod_async(to, from, self.stream) }?;
        }
        Ok(uploaded)
    }

    /// Decodes the images of a slot, including files that are longer than its rows, on the device. For tensors of
    /// images it replaces `start` and `wait`.
    ///
    /// # Errors
    /// The errors of `start`, and the error of `redo` for a file that the device refuses.
    pub(crate) fn decode(
        &mut self,
        engine: &Engine,
        (bytes, long): (&[u8], &LongFiles),
        parts: &[FlatTensor],
        destination: Destination,
        redo: Redo<'_>,
    ) -> Result<Vec<DeviceTensor>, Failure> {
        if let Some(error) = self.lost {
            return Err(Failure::Device(error.into()));
        }
        self.last = None; // it may be from a first try that failed
        let (maker, blocks) = self.take_blocks(parts, destination).map_err(Failure::Device)?;
        self.note(parts, &blocks);
        let mut uploaded = Vec::with_capacity(parts.len());
        for (part, (block, memory)) in parts.iter().zip(blocks) {
            let (to, room) = (memory.resource().ptr, memory.resource().size);
            uploaded.push(maker.later(&block, part, &self.blocks));
            self.in_flight.push((bytes::Bytes::new(), memory, block)); // given back by `wait`
            let [rows, _, height, width] = *part.shape.as_slice() else {
                return Err(Failure::Device("images have four dimensions".into()));
            };
            let Some(values) = part.images.as_ref().filter(|_| rows > 0 && part.bytes() as u64 <= room) else {
                return Err(Failure::Device("no room for images on the device".into()));
            };
            let images = Images {
                rows: &bytes[part.range.clone()],
                row_bytes: part.range.len() / rows,
                long,
                values,
                width: width as u32,
                height: height as u32,
            };
            // SAFETY: the block has room for the images. Nobody else uses it, as in `start`.
            unsafe { engine.decode(&images, to, self.stream, redo) }?;
        }
        Ok(uploaded)
    }

    /// Notes the largest block of a batch, and the bytes of the batch.
    fn note(&mut self, parts: &[FlatTensor], blocks: &HeldBlocks) {
        let largest = parts.iter().zip(blocks).max_by_key(|(part, _)| part.bytes());
        let Some((part, (block, _))) = largest else { return };
        let bytes: usize = parts.iter().map(FlatTensor::bytes).sum();
        self.last = Some(match self.last.take() {
            Some((other, others)) if others >= part.bytes() => (other, others + bytes),
            Some((_, others)) => (Arc::clone(block), others + bytes),
            None => (Arc::clone(block), bytes),
        });
    }

    /// Returns a block for each part, with the handle that pins its address. If no block is free, makes one.
    fn take_blocks(
        &mut self,
        parts: &[FlatTensor],
        destination: Destination,
    ) -> Result<(TensorMaker, HeldBlocks), BoxError> {
        let start = Instant::now();
        self.wait_for_graphs(start)?;
        let maker = match &self.maker {
            Some(maker) => maker.clone(),
            None => {
                let maker = self.maker.insert(TensorMaker::new(&self.device)?);
                self.pending.get_or_init(|| maker.pending(&self.server, &self.utilities.captures));
                maker.clone()
            }
        };
        let bytes = |part: &FlatTensor| part.bytes().max(1);
        let mut blocks: Vec<_> = parts.iter().map(|part| self.blocks.take(bytes(part), destination)).collect();
        let missing = blocks.iter().zip(parts).filter(|(block, _)| block.is_none());
        let missing: Vec<usize> = missing.map(|(_, part)| bytes(part)).collect();
        if !missing.is_empty() {
            let mut new = self.new_blocks(&missing, destination.consumer, start)?.into_iter();
            blocks.iter_mut().filter(|block| block.is_none()).for_each(|block| *block = new.next());
        }
        Ok((maker, blocks.into_iter().flatten().collect()))
    }

    /// Makes blocks of these sizes. If the device has no memory for them, gives back the blocks that nothing uses, and
    /// tries again.
    fn new_blocks(&self, sizes: &[usize], owner: StreamId, start: Instant) -> Result<HeldBlocks, BoxError> {
        let (mut given_up, mut alone) = (Vec::new(), None);
        let memory = loop {
            match self.allocate(sizes, owner, given_up.clone()) {
                Ok(Some(memory)) => break memory,
                Ok(None) => self.wait_for_graphs(start)?,
                Err(error) if alone.is_some() => return Err(error),
                // If another thread is giving back blocks now, this thread waits, and then finds their memory.
                Err(_) => (alone, given_up) = (Some(self.blocks.reclaims()), self.blocks.give_up()),
            }
        };
        let has_peers = has_peers(&self.utilities);
        let block = |((handle, memory), bytes): ((Handle, BlockMemory), &usize)| -> Result<_, BoxError> {
            Ok((Arc::new(Block::new(handle, *bytes, &self.context, &self.server, has_peers)?), memory))
        };
        memory.into_iter().zip(sizes).map(block).collect()
    }

    /// Waits while a graph is recorded on the device.
    ///
    /// # Errors
    /// If the recording is not over after [`RECORDING`].
    fn wait_for_graphs(&self, since: Instant) -> Result<(), BoxError> {
        while self.utilities.captures.any_recording() {
            if since.elapsed() > RECORDING {
                return Err(format!("a CUDA graph has been recorded on the device for {RECORDING:?}").into());
            }
            sleep(LOOK);
        }
        Ok(())
    }

    /// Allocates memory with undefined values for the stream `owner`, and makes the copy stream wait for the work
    /// queued there. Before that, CubeCL gives unused memory of the streams `clean` back to the driver. Returns `None`
    /// if a graph is being recorded on the device: an allocation would invalidate it, and the wait would become part of
    /// it.
    fn allocate(
        &self,
        sizes: &[usize],
        owner: StreamId,
        clean: Vec<StreamId>,
    ) -> Result<Option<Vec<(Handle, BlockMemory)>>, BoxError> {
        let (allocated, copies, context) =
            (DriverHandle(self.allocated), DriverHandle(self.stream), Arc::clone(&self.context));
        let (sizes, utilities) = (sizes.to_vec(), Arc::clone(&self.utilities));
        // This runs on the server's thread, where no recording can begin meanwhile.
        let allocate = move |server: &mut Server| -> Result<_, BoxError> {
            let (allocated, copies) = ({ allocated }.0, { copies }.0);
            if utilities.captures.any_recording() {
                return Ok(None);
            }
            for stream in clean {
                let cleaned = server.memory_cleanup(stream);
                cleaned.unwrap_or_else(|error| log::debug!("burn-pinned: memory was not given back: {error}"));
            }
            let mut memory = Vec::with_capacity(sizes.len());
            for bytes in sizes {
                let layout = MemoryLayoutDescriptor::new(MemoryLayoutStrategy::Contiguous, [bytes].into(), 1);
                let (whole, mut layouts) = utilities.layout_policy.apply(utilities.service, owner, &[layout]);
                let size = whole.size();
                server.initialize_memory(whole.memory, size, owner)?;
                let handle = layouts.pop().ok_or("CubeCL lays nothing out")?.memory;
                let held = server.get_resource(handle.clone().binding(), owner)?;
                memory.push((handle, held));
            }
            let stream = server.write_streams().try_stream_mut(&owner).ok_or("a stream of CubeCL has gone")?.sys;
            let _in_context = InContext::new(&context)?;
            // SAFETY: CubeCL keeps its streams for as long as its server. The event and the copy stream are the
            // caller's, who waits for this closure. The event may be recorded again at once: a wait is for what the
            // event stood for when the wait was queued.
            unsafe {
                if sys::cuStreamQuery(stream) != CUresult::CUDA_SUCCESS {
                    result::event::record(allocated, stream)?;
                    result::stream::wait_event(copies, allocated, CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT)?;
                }
            }
            if has_peers(&utilities) {
                let sent = CudaEvent::behind_transfers(server, &context)?;
                // SAFETY: as above.
                unsafe { sent.hold_up(copies) }?;
            }
            Ok(Some(memory))
        };
        self.server.submit_blocking(allocate).map_err(|error| format!("CubeCL's server: {error:?}"))?
    }

    /// Waits until the copies are done, then releases the bytes that they read. With `short`, the thread polls instead
    /// of sleeping.
    ///
    /// # Errors
    /// The driver's error. If the driver cannot confirm that the stream is done, the bytes that the stream may still
    /// read are never freed, and nothing is copied any more.
    pub(crate) fn wait(&mut self, short: bool) -> Result<(), DriverError> {
        if self.in_flight.is_empty() {
            return Ok(());
        }
        // SAFETY: the stream and the event are this one's, and live.
        let waited = unsafe {
            if short {
                result::stream::synchronize(self.stream)
            } else {
                let recorded = result::event::record(self.copied, self.stream);
                recorded.and_then(|()| result::event::synchronize(self.copied))
            }
        };
        // Waiting for the event may fail when waiting for the stream does not. SAFETY: as above.
        if waited.is_ok() || unsafe { result::stream::synchronize(self.stream) }.is_ok() {
            for (_, memory, block) in self.in_flight.drain(..) {
                drop(memory);
                self.blocks.give_back(block);
            }
        }
        if let (Err(error), false) = (&waited, self.in_flight.is_empty()) {
            self.lost = Some(*error);
            for copy in self.in_flight.drain(..) {
                copy.2.set_lost(error);
                mem::forget(copy);
            }
        }
        waited
    }

    /// Returns a function that reports what uses the memory of the last batch, including device work, and the bytes of
    /// that batch.
    pub(crate) fn in_use(&mut self) -> Option<(InUse, usize)> {
        let (block, bytes) = self.last.take()?;
        Some((block.in_use(), bytes))
    }
}

impl Drop for CopyStream {
    fn drop(&mut self) {
        let waited = self.wait(true);
        self.blocks.clear();
        // SAFETY: made in `new`, and destroyed only here. The driver frees each once its work is done.
        let destroyed = unsafe {
            let events = result::event::destroy(self.allocated).and(result::event::destroy(self.copied));
            result::stream::destroy(self.stream).and(events)
        };
        if let Err(error) = waited.and(destroyed) {
            log::debug!("burn-pinned: an error at the end of a copy stream: {error}");
        }
    }
}
