//! Makes Burn's tensors from device memory that this crate has filled.

use super::{block::Block, blocks::DeviceBlocks, context::Server};
use crate::device::flat::{AnyTensor, DeviceTensor, FlatTensor, made, stored, with_rank};
use crate::{
    fault::{BoxError, guard},
    vocabulary::{BatchKey, Place, Stage},
};
use burn::{
    backend::{
        BackendTensor, BackendTypes, Cube, CubeDevice, DispatchAutodiffContext, DispatchDevice, DispatchTensor,
        DispatchTensorKind, ExecutionError,
        fusion::{Fusion, FusionBackend, FusionRuntime, client::GlobalFusionClient, stream::Operation},
        ir::{BackendIr, HandleContainer, InitOperationIr, OperationIr, TensorIr, TensorStatus},
    },
    cubecl::device_handle::DeviceHandle,
    tensor::{Bool, DType, Device, Float, Int, StreamId, Tensor, kind::Autodiff},
};
use cubecl_runtime::{
    client,
    server::{CaptureStatus, Handle},
};
use std::sync::Arc;

/// The backend below Burn's fusion.
pub(in crate::device) trait InnerBackend {
    type Backend;
}

impl<B: FusionBackend> InnerBackend for Fusion<B> {
    type Backend = B;
}

pub(in crate::device) type Backend = <Cube as InnerBackend>::Backend;
pub(in crate::device) type CubeTensor = <Backend as BackendTypes>::FloatTensorPrimitive;
pub(in crate::device) type FusionTensor = <Cube as BackendTypes>::FloatTensorPrimitive;
pub(in crate::device) type Client = GlobalFusionClient<<Backend as FusionBackend>::FusionRuntime>;

/// Makes Burn's tensor from memory, for the calling thread. Burn's server runs `operation` when it reaches it in the
/// queue.
pub(in crate::device) fn registered<Op>(client: &Client, tensor: CubeTensor, operation: Op) -> FusionTensor
where
    Op: Operation<<Backend as FusionBackend>::FusionRuntime> + 'static,
{
    let (shape, dtype) = (tensor.meta.shape().clone(), tensor.dtype);
    let id = client.register_tensor_handle(Backend::float_tensor_handle(tensor));
    let out = TensorIr { id, shape, status: TensorStatus::NotInit, dtype };
    let init = OperationIr::Init(InitOperationIr { out });
    let made = client.register(StreamId::current(), init, operation).pop();
    let Some(made) = made else { unreachable!("an operation has the outputs that it names") };
    made
}

/// An operation that Burn's server runs when it reaches a tensor that was made here, after everything that the thread
/// requested before.
#[derive(Debug)]
struct Mark(Arc<DeviceBlocks>);

impl<R: FusionRuntime> Operation<R> for Mark {
    fn execute(&self, _: &mut HandleContainer<R::FusionHandle>) -> Result<(), ExecutionError> {
        self.0.mark();
        Ok(())
    }
}

/// Tasks of a device that Burn and CubeCL have buffered. Each buffers 32 tasks before its server runs them. Dropping a
/// tensor is a task for Burn, and a kernel that Burn launches is a task for CubeCL.
#[derive(derive_more::Debug)]
#[debug("PendingTasks")]
pub(in crate::device) struct PendingTasks {
    burn: Client,
    cubecl: DeviceHandle<Server>,
    graphs: CaptureStatus,
}

impl PendingTasks {
    /// Makes both servers run these tasks. Does not wait, so kernels that Burn's server launches now wait for the next
    /// call.
    pub(in crate::device) fn submit(&self) {
        self.burn.flush_queue();
        self.cubecl.flush_queue();
    }

    /// Whether Burn's operations may run now. Operations may allocate, which invalidates a graph that is being
    /// recorded. So they may not run once a recording is prepared, because it may begin at any time.
    pub(in crate::device) fn may_drain(&self) -> bool {
        !self.graphs.any_active()
    }

    /// Runs the operations that Burn's fusion holds back on a stream. Waits until they are launched, not until the
    /// device has completed them.
    pub(in crate::device) fn drain(&self, stream: StreamId) {
        let sync = || stream.executes(|| self.burn.try_sync(|| ())).map_err(|error| format!("{error:?}").into());
        if let Err(error) = guard(Place::batch(Stage::Transfer, BatchKey::NONE), sync) {
            log::debug!("burn-pinned: operations that Burn has kept: {error}");
        }
    }
}

/// Makes tensors of a device's memory.
///
/// Burn's fusion has a queue of operations for each thread. A tensor belongs to the queue of the thread that made it. A
/// thread that uses a tensor of another queue waits until Burn's server has run everything queued before. So tensors
/// are made on the thread that uses them.
#[derive(Clone)]
pub(in crate::device) struct TensorMaker(Arc<Template>);

struct Template {
    device: Device,
    burn: Client,
    cubecl: client::Client,
    cube: CubeDevice,
    context: DispatchAutodiffContext,
}

impl TensorMaker {
    /// Finds out how tensors of a device are built. Allocates nothing there, because a graph may be recorded.
    ///
    /// # Errors
    /// If the device is not one of CubeCL.
    pub(in crate::device) fn new(device: &Device) -> Result<Self, BoxError> {
        let (inner, context) = match device.as_dispatch().clone() {
            DispatchDevice::Autodiff(device) => {
                let strategy = device.gradient_checkpointing_strategy();
                (device.inner(), DispatchAutodiffContext::Enabled(strategy))
            }
            device => (device, DispatchAutodiffContext::Disabled),
        };
        let DispatchDevice::Cube(cube) = inner else { return Err("the device is not one of CubeCL".into()) };
        let (burn, cubecl) = (Client::load(&cube), cube.client());
        Ok(Self(Arc::new(Template { device: device.clone(), burn, cubecl, cube, context })))
    }

    /// The tasks that the device has not begun.
    pub(in crate::device) fn pending(&self, server: &DeviceHandle<Server>, graphs: &CaptureStatus) -> PendingTasks {
        PendingTasks { burn: self.0.burn.clone(), cubecl: server.clone(), graphs: graphs.clone() }
    }

    /// Returns the tensor of `part`, whose values are in a block, to be made on the thread that uses it.
    /// When Burn comes to that tensor, the events of earlier `blocks` are recorded.
    pub(in crate::device) fn later(
        &self,
        block: &Arc<Block>,
        part: &FlatTensor,
        blocks: &Arc<DeviceBlocks>,
    ) -> DeviceTensor {
        let (maker, part, blocks) = (self.clone(), part.clone(), Arc::clone(blocks));
        // If CubeCL has rounded the size up, the handle already has an end offset.
        let rest = block.memory.size_in_used().saturating_sub(part.bytes() as u64);
        let memory = block.memory.clone().offset_end(rest);
        let block = Arc::downgrade(block); // the loader may end first
        DeviceTensor::new(move || {
            block.upgrade().iter().for_each(|block| block.note_user());
            maker.make(memory, &part, blocks)
        })
    }

    fn make(&self, memory: Handle, part: &FlatTensor, blocks: Arc<DeviceBlocks>) -> AnyTensor {
        let Template { device, burn, cubecl, cube, context } = &*self.0;
        if part.bytes() == 0 {
            return made(None, part, device);
        }
        let (shape, dtype) = (part.shape.clone(), stored(part.dtype, device));
        let tensor = CubeTensor::new_contiguous(cubecl.clone(), cube.clone(), shape, memory, dtype);
        let made = registered(burn, tensor, Mark(blocks));
        let of = |tensor, autodiff| DispatchTensor { kind: DispatchTensorKind::Cube(tensor), autodiff };
        match dtype {
            DType::Bool(_) => ranked::<Bool>(of(BackendTensor::Bool(made), *context), part, false),
            // Float tensors with autodiff have another type.
            dtype if dtype.is_float() => {
                let tracked = *context == DispatchAutodiffContext::Enabled(Default::default());
                let tensor = of(BackendTensor::Float(made), DispatchAutodiffContext::Disabled);
                ranked::<Float>(tensor, part, tracked)
            }
            _ => ranked::<Int>(of(BackendTensor::Int(made), *context), part, false),
        }
    }
}

/// Makes the tensor of `part` from Burn's inner tensor.
fn ranked<K: Autodiff + 'static>(inner: DispatchTensor, part: &FlatTensor, autodiff: bool) -> AnyTensor {
    with_rank!(part.shape, RANK => {
        let tensor = Tensor::<RANK, K>::from_dispatch(inner);
        Box::new(if autodiff { tensor.autodiff() } else { tensor }) as AnyTensor
    })
}
