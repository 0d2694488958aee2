//! Copies to a CUDA device, on a stream that CubeCL does not know, to memory that CubeCL allocated.
#![expect(unsafe_code)]

use super::{
    cuda_block::{Block, Blocks, DeviceMemory},
    cuda_context::{InContext, Server},
    cuda_tensor::{Gathered, TensorMaker},
    decode::{Engine, Failure, Images},
    flat::{Part, Redo, Uploaded},
    window::InUse,
};
use crate::{fault::BoxError, memory::LongFiles};
use burn::{
    backend::Device as _,
    cubecl::{cuda::CudaDevice, device_handle::DeviceHandle},
    tensor::{Device, StreamId},
};
use cubecl_runtime::server::{CaptureStatus, ServerStorage, ServerUtilities};
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

/// Blocks that are not moved.
type Held = Vec<(Arc<Block>, DeviceMemory)>;

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
    device: Device,
    /// Made with the first batch.
    maker: Option<TensorMaker>,
    gathered: Arc<OnceLock<Gathered>>,
    blocks: Arc<Blocks>,
    /// The graphs that are recorded on the device.
    graphs: CaptureStatus,
    /// What the copies under way read, and where they write.
    in_flight: Vec<(bytes::Bytes, DeviceMemory, Arc<Block>)>,
    /// The largest block of the last batch, and the bytes of that batch.
    last: Option<(Arc<Block>, usize)>,
    /// The error after which no copy is started any more, since the end of one is not known.
    lost: Option<DriverError>,
    /// The thread stays in the context for as long as it has the stream.
    _in_context: InContext,
}

/// A handle of the driver's, on its way to the thread of CubeCL's server.
#[derive(Clone, Copy)]
struct Sent<T>(T);

// SAFETY: streams and events of CUDA may be used from any thread. `CopyStream` destroys its own only after the closure
// that got them has returned.
unsafe impl Send for Sent<CUevent> {}
// SAFETY: as above.
unsafe impl Send for Sent<CUstream> {}

impl CopyStream {
    /// Makes a stream on the device's primary context, for copies to `blocks`.
    ///
    /// # Errors
    /// The reason in words.
    pub(crate) fn new(
        ordinal: usize,
        device: &Device,
        blocks: &Arc<Blocks>,
        gathered: &Arc<OnceLock<Gathered>>,
    ) -> Result<Self, BoxError> {
        let (entered, context) = InContext::open(ordinal)?;
        // cudarc's own streams would wait for the whole context.
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        let allocated = result::event::create(CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
        // A thread that waits sleeps: its core is for the workers.
        let copied = result::event::create(CUevent_flags::CU_EVENT_BLOCKING_SYNC)?;
        let server = DeviceHandle::<Server>::new(CudaDevice::new(ordinal).to_id());
        let utilities = server.utilities().downcast::<ServerUtilities>();
        let graphs = utilities.map_err(|_| "CubeCL's server is not as expected")?.captures.clone();
        Ok(Self {
            context,
            stream,
            allocated,
            copied,
            server,
            device: device.clone(),
            maker: None,
            gathered: Arc::clone(gathered),
            blocks: Arc::clone(blocks),
            graphs,
            in_flight: Vec::new(),
            last: None,
            lost: None,
            _in_context: entered,
        })
    }

    /// Starts to copy parts of `bytes` to the device, for the thread whose CubeCL stream is `consumer`. Until
    /// [`wait`](Self::wait) the values there may be anything. Blocks while a CUDA graph is recorded on the device, since
    /// nothing can be allocated then. If the recording begins later, copies to blocks that are held go on beside it: they
    /// allocate nothing. Of blocks that nothing uses, `most` are kept.
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
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let (maker, blocks) = self.blocks(parts, consumer, most)?;
        let uploaded = parts
            .iter()
            .zip(&blocks)
            .map(|(part, (block, _))| Uploaded::Memory(maker.later(&block.memory, part, &self.blocks)));
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

    /// Makes the images of a slot, and of files that are longer than its rows, on the device. It is for parts that are
    /// rows of images, and does for them what `start` and `wait` do.
    ///
    /// # Errors
    /// As those of `start`, and what `redo` returns about a file that the device refuses.
    pub(crate) fn decode(
        &mut self,
        engine: &Engine,
        (bytes, long): (&[u8], &LongFiles),
        parts: &[Part],
        consumer: StreamId,
        most: usize,
        redo: Redo<'_>,
    ) -> Result<Vec<Uploaded>, Failure> {
        if let Some(error) = self.lost {
            return Err(Failure::Device(error.into()));
        }
        self.last = None; // of a first try that failed
        let (maker, blocks) = self.blocks(parts, consumer, most).map_err(Failure::Device)?;
        self.note(parts, &blocks);
        let mut uploaded = Vec::with_capacity(parts.len());
        for (part, (block, memory)) in parts.iter().zip(blocks) {
            let (to, room) = (memory.resource().ptr, memory.resource().size);
            uploaded.push(Uploaded::Memory(maker.later(&block.memory, part, &self.blocks)));
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
    fn note(&mut self, parts: &[Part], blocks: &Held) {
        let largest = parts.iter().zip(blocks).max_by_key(|(part, _)| part.bytes());
        let Some((part, (block, _))) = largest else { return };
        let bytes: usize = parts.iter().map(Part::bytes).sum();
        self.last = Some(match self.last.take() {
            Some((other, others)) if others >= part.bytes() => (other, others + bytes),
            Some((_, others)) => (Arc::clone(block), others + bytes),
            None => (Arc::clone(block), bytes),
        });
    }

    /// Returns a block for each part, with what keeps it in its place.
    fn blocks(&mut self, parts: &[Part], consumer: StreamId, most: usize) -> Result<(TensorMaker, Held), BoxError> {
        let start = Instant::now();
        loop {
            if self.graphs.any_recording() {
                if start.elapsed() > RECORDING {
                    return Err(format!("a CUDA graph has been recorded on the device for {RECORDING:?}").into());
                }
                sleep(LOOK);
                continue;
            }
            let maker = match &self.maker {
                Some(maker) => maker.clone(),
                None => {
                    let maker = self.maker.insert(TensorMaker::new(&self.device)?);
                    self.gathered.get_or_init(|| maker.gathered(&self.server));
                    maker.clone()
                }
            };
            let block = |part: &Part| {
                let bytes = part.bytes().max(1);
                let free = self.blocks.take(bytes, consumer, most);
                let new = || Block::new(maker.allocate(bytes, consumer), bytes, &self.context, &self.server);
                free.map_or_else(|| new().map(Arc::new), Ok)
            };
            let blocks = parts.iter().map(block).collect::<Result<Vec<_>, _>>()?;
            match self.hold(blocks) {
                Ok(Some(held)) => return Ok((maker, held)),
                Ok(None) => {}
                Err(_) if self.graphs.any_recording() => {} // it began after the check above: nothing can be allocated
                Err(error) => return Err(error),
            }
        }
    }

    /// Holds blocks in their places. If all are held already, asks nobody. Else asks the server where they are, and if
    /// one is new there, makes the copy stream wait for what is queued on the stream that the memory is from. Returns
    /// `None` if that stream records a graph: the wait would become a part of the graph.
    fn hold(&self, blocks: Vec<Arc<Block>>) -> Result<Option<Held>, BoxError> {
        let held: Vec<_> = blocks.iter().map(|block| block.take_held()).collect();
        if held.iter().all(Option::is_some) {
            let held: Held = blocks.into_iter().zip(held.into_iter().flatten()).collect();
            for (block, memory) in &held {
                block.used(memory.resource().ptr);
            }
            return Ok(Some(held));
        }
        let (allocated, copies, context) = (Sent(self.allocated), Sent(self.stream), Arc::clone(&self.context));
        // This runs on the server's thread, where no recording can begin meanwhile.
        let hold = move |server: &mut Server| -> Result<Option<Held>, BoxError> {
            let (allocated, copies) = ({ allocated }.0, { copies }.0);
            let (mut held, mut new) = (Vec::with_capacity(blocks.len()), None);
            for block in blocks {
                let owner = block.owner;
                let stream = server.write_streams().try_stream_mut(&owner);
                if stream.ok_or("CubeCL does not know the stream of its own memory")?.capturing.is_recording() {
                    return Ok(None);
                }
                let memory = server.get_resource(block.memory.clone().binding(), owner)?;
                if block.used(memory.resource().ptr) {
                    new = Some(owner); // all of them have the same
                }
                held.push((block, memory));
            }
            if let Some(owner) = new {
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
            }
            Ok(Some(held))
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
        if waited.is_ok() || unsafe { result::stream::synchronize(self.stream) }.is_ok() {
            for (_, memory, block) in self.in_flight.drain(..) {
                drop(memory);
                self.blocks.give_back(block);
            }
        }
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
