//! Copies to a CUDA device, on a stream that CubeCL does not know, into memory that CubeCL allocated.
#![expect(unsafe_code)]

use super::{
    cuda_context::Entered,
    flat::{Flat, Part},
    window::InUse,
};
use crate::fault::BoxError;
use burn::{
    backend::Device as _,
    cubecl::{
        cuda::{CudaDevice, CudaRuntime},
        device_handle::DeviceHandle,
    },
    tensor::Device,
};
use cubecl_runtime::{
    runtime::Runtime,
    server::{CaptureStatus, Handle, ServerStorage, ServerUtilities, WeakBufferBinding},
    storage::{ComputeStorage, ManagedResource},
};
use cubecl_server::stream::WriteScoped;
use cudarc::driver::{
    CudaContext, DriverError, result,
    sys::{self, CUevent, CUevent_flags, CUevent_wait_flags, CUresult, CUstream},
};
use std::{
    mem,
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

/// How long copies wait while a CUDA graph is recorded on their device.
const RECORDING: Duration = Duration::from_secs(30);
/// How often they check whether the recording is done.
const LOOK: Duration = Duration::from_micros(200);

/// Memory of a tensor: while this lives, CubeCL neither moves nor reuses it.
type DeviceMemory = ManagedResource<<<Server as ServerStorage>::Storage as ComputeStorage>::Resource>;
/// CubeCL's server for CUDA.
type Server = <CudaRuntime as Runtime>::Server;

/// Copies to a device on a CUDA stream of its own.
///
/// Each copy comes after everything that was queued on the CubeCL stream that its memory is from. No thread waits for
/// that: the copy stream waits for an event, unless the other stream is idle anyway. So it does not matter what else
/// runs there. It may be the training's kernels, under the streaming policy `single` or where two threads share a
/// stream, or an allocation of `cuMemAllocAsync`.
pub(crate) struct CopyStream {
    context: Arc<CudaContext>,
    stream: CUstream,
    /// An event on a stream of CubeCL. The copies come after it.
    allocated: CUevent,
    /// An event on the copy stream: the copies are done.
    copied: CUevent,
    server: DeviceHandle<Server>,
    /// The graphs that are recorded on the device.
    graphs: CaptureStatus,
    /// What the copies under way read, and what keeps the memory that they write in its place.
    in_flight: Vec<(bytes::Bytes, DeviceMemory)>,
    /// The largest tensor since the last wait.
    largest: Option<(usize, WeakBufferBinding)>,
    /// The bytes of all tensors since then.
    sent: usize,
    /// The error after which no copy is started any more, since the end of one is not known.
    lost: Option<DriverError>,
}

/// A handle of the driver's, on its way to the thread of CubeCL's server.
#[derive(Clone, Copy)]
struct Sent<T>(T);

// SAFETY: streams and events of CUDA may be used from any thread. `CopyStream` destroys its own only after the closure
// that got them has returned.
unsafe impl<T> Send for Sent<T> {}

/// Device memory, with what tells how long it is used.
type Allocated = Vec<(DeviceMemory, WeakBufferBinding)>;

impl CopyStream {
    /// Makes a stream on the device's primary context.
    ///
    /// # Errors
    /// The reason in words.
    pub(crate) fn new(ordinal: usize) -> Result<Self, BoxError> {
        let (_entered, context) = Entered::open(ordinal)?;
        // cudarc's own streams would wait for the whole context.
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        let allocated = result::event::create(CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
        // A thread that waits sleeps: its core is for the workers.
        let copied = result::event::create(CUevent_flags::CU_EVENT_BLOCKING_SYNC)?;
        let server = DeviceHandle::<Server>::new(CudaDevice::new(ordinal).to_id());
        let utilities = server.utilities().downcast::<ServerUtilities>();
        let graphs = utilities.map_err(|_| "CubeCL's server is not as expected")?.captures.clone();
        let (in_flight, largest, sent, lost) = (Vec::new(), None, 0, None);
        Ok(Self { context, stream, allocated, copied, server, graphs, in_flight, largest, sent, lost })
    }

    /// Starts to copy parts of `bytes` into new tensors. Until [`wait`](Self::wait) their values may be anything.
    /// Blocks while a CUDA graph is recorded on the device, since nothing can be allocated then.
    ///
    /// # Errors
    /// If the device has no memory for it, or refuses a copy. Copies that were started go on.
    pub(crate) fn tensors(
        &mut self,
        bytes: &bytes::Bytes,
        parts: &[Part],
        device: &Device,
    ) -> Result<Vec<Flat>, BoxError> {
        if let Some(error) = self.lost {
            return Err(error.into());
        }
        let (tensors, memory) = self.allocate(parts, device)?;
        let _entered = Entered::new(&self.context)?;
        for (part, (memory, weak)) in parts.iter().zip(memory) {
            let (from, resource) = (bytes.slice(part.range.clone()), memory.resource());
            let (to, room) = (resource.ptr, resource.size);
            if (room as usize) < from.len() {
                return Err(format!("{} bytes do not fit into {room} bytes of device memory", from.len()).into());
            }
            if self.largest.as_ref().is_none_or(|(largest, _)| *largest < from.len()) {
                self.largest = Some((from.len(), weak));
            }
            self.sent += from.len();
            self.in_flight.push((from, memory));
            let Some((from, _)) = self.in_flight.last().filter(|(from, _)| !from.is_empty()) else { continue };
            // SAFETY: `to` is the start of at least as many bytes of the device as are copied. CubeCL hands memory out
            // again in the order of the stream that it is from, so what that stream had queued may still use it.
            // `allocate` saw that all of that was done, or made this stream wait for an event behind it. Nobody else
            // knows the tensor yet. `in_flight` keeps both ends of the copy until `wait` has seen the copy end, and
            // only then do others learn of the tensor.
            unsafe { result::memcpy_htod_async(to, from, self.stream) }?;
        }
        Ok(tensors)
    }

    /// Lets Burn allocate the tensors of a batch, and makes the copy stream wait for all that was queued on the streams
    /// that their memory is from.
    fn allocate(&self, parts: &[Part], device: &Device) -> Result<(Vec<Flat>, Allocated), BoxError> {
        let start = Instant::now();
        loop {
            if self.graphs.any_recording() {
                if start.elapsed() > RECORDING {
                    return Err(format!("a CUDA graph has been recorded on the device for {RECORDING:?}").into());
                }
                sleep(LOOK);
                continue;
            }
            let tensors: Vec<Flat> = parts.iter().map(|part| Flat::empty(part, device)).collect();
            match tensors.iter().map(Flat::handle).collect::<Result<_, _>>().and_then(|handles| self.order(handles)) {
                Ok(Some(memory)) => return Ok((tensors, memory)),
                Ok(None) => {}
                Err(_) if self.graphs.any_recording() => {} // it began after the check above: nothing can be allocated
                Err(error) => return Err(error),
            }
        }
    }

    /// Looks up the memory of tensors, and makes the copy stream wait for what is queued on the streams that it is
    /// from. Returns `None` if one of these records a graph: the wait would become a part of the graph.
    fn order(&self, tensors: Vec<Handle>) -> Result<Option<Allocated>, BoxError> {
        let (allocated, copies, context) = (Sent(self.allocated), Sent(self.stream), Arc::clone(&self.context));
        // This runs on the server's thread, where no recording can begin meanwhile.
        let order = move |server: &mut Server| -> Result<Option<Allocated>, BoxError> {
            let (allocated, copies) = ({ allocated }.0, { copies }.0);
            let (mut memory, mut streams) = (Vec::with_capacity(tensors.len()), Vec::new());
            for tensor in tensors {
                let (of, binding) = (tensor.stream, tensor.binding());
                let weak = binding.downgrade();
                if !streams.contains(&of) {
                    streams.push(of);
                    let stream = server.write_streams().try_stream_mut(&of);
                    if stream.ok_or("CubeCL does not know the stream of its own memory")?.capturing.is_recording() {
                        return Ok(None);
                    }
                }
                memory.push((server.get_resource(binding, of)?, weak));
            }
            for of in streams {
                let stream = server.write_streams().try_stream_mut(&of).ok_or("a stream of CubeCL has gone")?.sys;
                let _entered = Entered::new(&context)?;
                // SAFETY: CubeCL keeps its streams for as long as its server. The event and the copy stream are the
                // caller's, who waits for this closure. The event may be recorded again at once: a wait is for what the
                // event stood for when the wait was queued.
                unsafe {
                    if sys::cuStreamQuery(stream) == CUresult::CUDA_SUCCESS {
                        continue; // as nearly always: nothing is queued there
                    }
                    result::event::record(allocated, stream)?;
                    result::stream::wait_event(copies, allocated, CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT)?;
                }
            }
            Ok(Some(memory))
        };
        self.server.submit_blocking(order).map_err(|error| format!("CubeCL's server: {error:?}"))?
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
            if waited.is_err() && unsafe { result::stream::synchronize(self.stream) }.is_ok() {
                self.in_flight.clear();
            }
            waited
        });
        if let (Err(error), false) = (&waited, self.in_flight.is_empty()) {
            self.lost = Some(*error);
            self.in_flight.drain(..).for_each(mem::forget);
        }
        self.in_flight.clear();
        waited
    }

    /// Returns what tells whether the largest tensor since the last call is in use, also by work of the device. The
    /// number is the bytes of all tensors since then.
    pub(crate) fn in_use(&mut self) -> Option<(InUse, usize)> {
        let bytes = mem::take(&mut self.sent);
        let (_, weak) = self.largest.take()?;
        Some((Box::new(move || weak.upgrade().is_some()), bytes))
    }
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
