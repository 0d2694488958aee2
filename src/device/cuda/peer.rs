//! Copies a tensor from one CUDA device to another with the copy engines.
#![expect(unsafe_code)]

use super::{
    block::BlockMemory,
    context::{InContext, Server, ordinal, server},
    event::{CudaEvent, has_peers},
    rows::{fused, resolved},
    tensor::{Backend, Client, CubeTensor, registered},
};
use crate::{fault::BoxError, sync::locks::Mutex};
use burn::{
    backend::{DispatchAutodiffContext, DispatchDevice, DispatchTensor, DispatchTensorKind, fusion::NoOp},
    tensor::{Device, StreamId, Tensor, kind::Autodiff},
};
use burn_cubecl::kernel::into_contiguous;
use cubecl_runtime::server::{Handle, ServerStorage};
use cubecl_server::stream::WriteScoped;
use cudarc::driver::{CudaContext, result, sys, sys::CUresult};
use std::{mem, sync::Arc};

/// Pairs of devices, the first of which reads the memory of the second.
static CONNECTED: Mutex<Vec<[usize; 2]>> = Mutex::new(Vec::new());

/// Device memory with a pinned address, and an event after all work queued for it.
struct CopyPlace {
    memory: BlockMemory,
    reached: Vec<CudaEvent>,
    context: Arc<CudaContext>,
}

/// Copies a tensor to a device, for the calling thread. Returns `None` if one of the devices is not a CUDA device, or if the calling thread
/// made the tensor on that device.
///
/// # Errors
/// The reason in words, or the driver's.
pub(in crate::device) fn copied<const D: usize, K: Autodiff>(
    tensor: &Tensor<D, K>,
    to: &Device,
) -> Result<Option<Tensor<D, K>>, BoxError> {
    let (Some(source), Some(target)) = (ordinal(&tensor.device()), ordinal(to)) else { return Ok(None) };
    let DispatchDevice::Cube(cube) = to.clone().without_autodiff().as_dispatch().clone() else { return Ok(None) };
    let fused = fused(tensor.clone().into_dispatch());
    if source == target && fused.as_ref().is_none_or(|(fused, _)| fused.stream == StreamId::current()) {
        return Ok(None);
    }
    let (fused, kind) = fused.ok_or("autodiff follows the tensor, or it is quantized")?;
    let values =
        resolved(fused).ok_or("a step is recorded on the tensor's device, and the copy would become a part of it")?;
    // From here on the calling thread's stream waits for the stream that writes the values.
    let mut from = CopyPlace::of(source, &values.handle)?;
    let values = if values.is_contiguous() {
        values
    } else {
        let values = into_contiguous(values);
        from = CopyPlace::of(source, &values.handle)?;
        values
    };
    let (shape, dtype) = (values.meta.shape().clone(), values.dtype);
    let bytes = shape.num_elements() * dtype.size();
    let (burn, client) = (Client::load(&cube), cube.client());
    if client.is_capturing() {
        return Err("a step is recorded on the other device, and the copy would become a part of it".into());
    }
    let handle = client.empty(bytes.max(1));
    if bytes > 0 {
        let to = CopyPlace::of(target, &handle)?;
        connect([target, source], &to.context, &from.context);
        copy(from, to, bytes)?;
    }
    let made = CubeTensor::new_contiguous(client, cube, shape, handle, dtype);
    let kind = DispatchTensorKind::Cube(kind(registered(&burn, made, NoOp::<Backend>::new())));
    let plain = Tensor::from_dispatch(DispatchTensor { kind, autodiff: DispatchAutodiffContext::Disabled });
    Ok(Some(if to.is_autodiff() { plain.autodiff() } else { plain }))
}

impl CopyPlace {
    /// Finds the memory of a handle. The event comes after all work queued on its stream and on the calling thread's stream. CubeCL's own
    /// wait between the streams only covers the allocation, not values that are written in place later.
    fn of(ordinal: usize, handle: &Handle) -> Result<Self, BoxError> {
        let (_in_context, context) = InContext::open(ordinal)?;
        let (server, utilities) = server(ordinal)?;
        let (binding, owner, of_server) = (handle.clone().binding(), handle.stream, Arc::clone(&context));
        let stream = StreamId::current();
        let find = move |server: &mut Server| -> Result<_, BoxError> {
            let memory = server.get_resource(binding, stream)?;
            let owner = server.write_streams().try_stream_mut(&owner).map(|owner| owner.sys);
            let sys = server.write_streams().try_stream_mut(&stream).ok_or("a stream of CubeCL has gone")?.sys;
            let _in_context = InContext::new(&of_server)?;
            let event = CudaEvent::new(&of_server)?;
            // SAFETY: CubeCL keeps its streams for as long as its server.
            unsafe {
                if let Some(owner) = owner.filter(|owner| *owner != sys) {
                    event.record(owner)?;
                    event.hold_up(sys)?;
                }
                event.record(sys)?;
            }
            let mut reached = vec![event];
            if has_peers(&utilities) {
                reached.push(CudaEvent::behind_transfers(server, &of_server)?);
            }
            Ok((memory, reached))
        };
        let found = server.submit_blocking(find).map_err(|error| format!("CubeCL's server: {error:?}"))?;
        let (memory, reached) = found?;
        Ok(Self { memory, reached, context })
    }
}

/// Copies bytes, and waits until they are there.
fn copy(from: CopyPlace, to: CopyPlace, bytes: usize) -> Result<(), BoxError> {
    let rooms = [&from, &to].map(|place| place.memory.resource().size);
    if rooms.into_iter().any(|room| (room as usize) < bytes) {
        return Err(format!("{bytes} bytes do not fit into {rooms:?} bytes of device memory").into());
    }
    let _in_context = InContext::new(&to.context)?;
    let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
    // SAFETY: both places have room for the bytes, and hold their memory until the wait below. The stream begins behind all that is
    // queued for them: so the source has its values, and nobody uses the target, whose tensor is made after the wait.
    let (copied, waited) = unsafe {
        let queue = || {
            from.reached.iter().chain(&to.reached).try_for_each(|event| event.hold_up(stream))?;
            let [source, target] = [&from, &to].map(|place| place.memory.resource().ptr);
            result::memcpy_peer_async(to.context.cu_ctx(), target, from.context.cu_ctx(), source, bytes, stream)
        };
        (queue(), result::stream::synchronize(stream))
    };
    if waited.is_err() {
        // The copy may still be running, so its memory and the stream are never freed.
        mem::forget((from, to));
        return Ok(waited?);
    }
    // SAFETY: made above, and idle.
    unsafe { result::stream::destroy(stream) }?;
    Ok(copied?)
}

/// Lets a device read another one's memory directly, if the machine supports it. Otherwise the driver copies through the host.
fn connect(pair: [usize; 2], reader: &CudaContext, owner: &CudaContext) {
    let mut connected = CONNECTED.lock();
    if pair[0] == pair[1] || connected.contains(&pair) {
        return;
    }
    let Ok(_in_context) = InContext::new(reader) else { return };
    connected.push(pair);
    // SAFETY: the contexts are open for the life of the process, and `reader` is the thread's.
    let enabled = unsafe { sys::cuCtxEnablePeerAccess(owner.cu_ctx(), 0) };
    if !matches!(enabled, CUresult::CUDA_SUCCESS | CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
        log::debug!("burn-pinned: device {} copies from device {} through the host: {enabled:?}", pair[0], pair[1]);
    }
}
