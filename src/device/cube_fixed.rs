//! Memory of a device of CubeCL that stays where it is, while values of one tensor after the other are copied there.

use super::cuda_tensor::{Backend, CubeTensor, registered};
use burn::{
    backend::{
        BackendTensor, Cube, DispatchTensor, DispatchTensorKind, cubecl::dtype_to_storage_type, fusion::NoOp,
        ir::TensorId,
    },
    cubecl::std::tensor::copy_into,
    tensor::StreamId,
};
use std::ptr;

/// A tensor whose memory stays.
pub(crate) struct FixedTensor {
    memory: CubeTensor,
    tensor: DispatchTensor,
    id: TensorId,
    /// The CubeCL stream of the thread that made it. Steps are recorded there, and copies are queued there.
    stream: StreamId,
}

impl FixedTensor {
    /// Copies a tensor to memory of its own.
    ///
    /// # Errors
    /// The reason in words, if that cannot be.
    pub(crate) fn new(tensor: DispatchTensor) -> Result<Self, &'static str> {
        let autodiff = tensor.autodiff;
        let tensor = of_cube(tensor)?;
        let values = resolved(tensor.clone())?;
        let (client, shape, dtype) = (values.client.clone(), values.meta.shape().clone(), values.dtype);
        let handle = client.empty((shape.num_elements() * dtype.size()).max(1));
        let memory = CubeTensor::new_contiguous(client, values.device.clone(), shape, handle, dtype);
        copy(values, &memory);
        let (BackendTensor::Float(fused) | BackendTensor::Int(fused) | BackendTensor::Bool(fused)) = &tensor else {
            return Err(QUANTIZED);
        };
        let made = registered(&fused.client, memory.clone(), NoOp::<Backend>::new());
        let id = made.id;
        let kind = match tensor {
            BackendTensor::Float(_) => BackendTensor::Float(made),
            BackendTensor::Int(_) => BackendTensor::Int(made),
            _ => BackendTensor::Bool(made),
        };
        let tensor = DispatchTensor { kind: DispatchTensorKind::Cube(kind), autodiff };
        Ok(Self { memory, tensor, id, stream: StreamId::current() })
    }

    /// Copies the values of a tensor there, after all that the calling thread has asked for. Its shape and dtype must be
    /// those of the first.
    ///
    /// # Errors
    /// The reason in words, if that cannot be. Nothing was copied then.
    pub(crate) fn set(&self, tensor: DispatchTensor) -> Result<(), &'static str> {
        if StreamId::current() != self.stream {
            return Err("it was made on another thread, where steps may read it at any time");
        }
        let (values, Self { memory, .. }) = (resolved(of_cube(tensor)?)?, self);
        if values.device != memory.device {
            return Err("it is on another device than in the first batch");
        }
        if ptr::eq(values.handle.memory.descriptor(), memory.handle.memory.descriptor()) {
            return Err("it is the tensor that stays, or a view of it");
        }
        copy(values, memory);
        Ok(())
    }

    pub(crate) fn tensor(&self) -> DispatchTensor {
        self.tensor.clone()
    }

    /// Whether a tensor is this one, and not what was computed with it.
    pub(crate) fn is(&self, tensor: DispatchTensor) -> bool {
        let id = |tensor: BackendTensor<Cube>| match tensor {
            BackendTensor::Float(fused) | BackendTensor::Int(fused) | BackendTensor::Bool(fused) => Some(fused.id),
            _ => None,
        };
        of_cube(tensor).ok().and_then(id) == Some(self.id)
    }

    /// Asks CubeCL whether allocations, copies and what they copied went well so far. Does not wait for the device.
    ///
    /// # Errors
    /// What it says.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.memory.client.check([&self.memory.handle]).map_err(|error| error.to_string())
    }
}

const QUANTIZED: &str = "it is quantized";

fn of_cube(tensor: DispatchTensor) -> Result<BackendTensor<Cube>, &'static str> {
    match tensor.kind {
        DispatchTensorKind::Cube(BackendTensor::Autodiff(_)) | DispatchTensorKind::Autodiff(_) => {
            Err("autodiff follows it")
        }
        DispatchTensorKind::Cube(BackendTensor::Quantized(_)) => Err(QUANTIZED),
        DispatchTensorKind::Cube(tensor) => Ok(tensor),
        _ => Err("its device is none of CubeCL"),
    }
}

/// Returns the memory of a tensor, once all that the calling thread has asked for before is queued on its stream.
fn resolved(tensor: BackendTensor<Cube>) -> Result<CubeTensor, &'static str> {
    let (BackendTensor::Float(fused) | BackendTensor::Int(fused) | BackendTensor::Bool(fused)) = &tensor else {
        return Err(QUANTIZED);
    };
    let client = fused.client.clone();
    if fused.stream != StreamId::current() {
        client.sync(|| ()); // what follows does it for the stream of the tensor
    }
    let values = match tensor {
        BackendTensor::Float(fused) => client.resolve_tensor_float::<Backend>(fused),
        BackendTensor::Int(fused) => client.resolve_tensor_int::<Backend>(fused),
        BackendTensor::Bool(fused) => client.resolve_tensor_bool::<Backend>(fused),
        _ => return Err(QUANTIZED),
    };
    if values.client.is_capturing() {
        return Err("a step is recorded, and a copy would become a part of it");
    }
    Ok(values)
}

/// Copies on the calling thread's stream.
fn copy(from: CubeTensor, to: &CubeTensor) {
    if to.meta.shape().num_elements() == 0 {
        return;
    }
    let client = to.client.clone();
    copy_into(&client, from.binding(), to.clone().binding(), dtype_to_storage_type(to.dtype));
}
