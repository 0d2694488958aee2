//! Memory of a device of CubeCL that stays where it is, while values of one tensor after the other are copied there.

use super::cuda_tensor::{Backend, CubeTensor};
use burn::{
    backend::{
        BackendTensor, Cube, DispatchTensor, DispatchTensorKind,
        cubecl::dtype_to_storage_type,
        fusion::NoOp,
        ir::{BackendIr, InitOperationIr, OperationIr, TensorIr, TensorStatus},
    },
    cubecl::std::tensor::copy_into,
    tensor::StreamId,
};

/// A tensor whose memory stays.
pub(crate) struct FixedTensor {
    memory: CubeTensor,
    tensor: DispatchTensor,
}

impl FixedTensor {
    /// Copies a tensor to memory of its own. Returns `None` if its device is none of CubeCL, or if autodiff follows it.
    pub(crate) fn new(tensor: DispatchTensor) -> Option<Self> {
        let DispatchTensor { kind: DispatchTensorKind::Cube(tensor), autodiff } = tensor else { return None };
        let values = resolved(tensor.clone())?;
        let (client, shape, dtype) = (values.client.clone(), values.meta.shape().clone(), values.dtype);
        let handle = client.empty((shape.num_elements() * dtype.size()).max(1));
        let memory = CubeTensor::new_contiguous(client, values.device.clone(), shape.clone(), handle, dtype);
        copy(values, &memory);
        let (BackendTensor::Float(fused) | BackendTensor::Int(fused) | BackendTensor::Bool(fused)) = &tensor else {
            return None;
        };
        let id = fused.client.register_tensor_handle(Backend::float_tensor_handle(memory.clone()));
        let out = TensorIr { id, shape, status: TensorStatus::NotInit, dtype };
        let init = OperationIr::Init(InitOperationIr { out });
        let made = fused.client.register(StreamId::current(), init, NoOp::<Backend>::new()).pop()?;
        let kind = match tensor {
            BackendTensor::Float(_) => BackendTensor::Float(made),
            BackendTensor::Int(_) => BackendTensor::Int(made),
            _ => BackendTensor::Bool(made),
        };
        Some(Self { memory, tensor: DispatchTensor { kind: DispatchTensorKind::Cube(kind), autodiff } })
    }

    /// Copies the values of a tensor there, after all that the calling thread has asked for. Its shape and dtype must be
    /// those of the first. Returns whether they are, and whether it is on the same device.
    pub(crate) fn set(&self, tensor: DispatchTensor) -> bool {
        let DispatchTensorKind::Cube(tensor) = tensor.kind else { return false };
        let (Some(values), Self { memory, .. }) = (resolved(tensor), self) else { return false };
        let same = values.meta.shape() == memory.meta.shape() && values.dtype == memory.dtype;
        let fits = same && values.device == memory.device;
        if fits {
            copy(values, memory);
        }
        fits
    }

    pub(crate) fn tensor(&self) -> DispatchTensor {
        self.tensor.clone()
    }
}

/// Returns the memory of a tensor, once all that the calling thread has asked for before is queued on its stream.
fn resolved(tensor: BackendTensor<Cube>) -> Option<CubeTensor> {
    let (BackendTensor::Float(fused) | BackendTensor::Int(fused) | BackendTensor::Bool(fused)) = &tensor else {
        return None;
    };
    let client = fused.client.clone();
    if fused.stream != StreamId::current() {
        client.sync(|| ()); // what follows does it for the stream of the tensor
    }
    Some(match tensor {
        BackendTensor::Float(fused) => client.resolve_tensor_float::<Backend>(fused),
        BackendTensor::Int(fused) => client.resolve_tensor_int::<Backend>(fused),
        BackendTensor::Bool(fused) => client.resolve_tensor_bool::<Backend>(fused),
        _ => return None,
    })
}

/// Copies on the calling thread's stream.
fn copy(from: CubeTensor, to: &CubeTensor) {
    if to.meta.shape().num_elements() == 0 {
        return;
    }
    let client = to.client.clone();
    copy_into(&client, from.binding(), to.clone().binding(), dtype_to_storage_type(to.dtype));
}
