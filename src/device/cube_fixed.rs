//! Memory of a device of CubeCL that stays where it is, while values of one tensor after the other are copied there.

use super::cuda_tensor::{Backend, CubeTensor, FusionTensor, registered};
use burn::{
    backend::{
        BackendTensor, Cube, DispatchAutodiffContext, DispatchTensor, DispatchTensorKind,
        cubecl::dtype_to_storage_type, fusion::NoOp,
    },
    cubecl::std::tensor::copy_into,
    tensor::StreamId,
};
use std::ptr;

/// Makes Burn's tensor of one kind: float, int or bool.
pub(super) type ToBackend = fn(FusionTensor) -> BackendTensor<Cube>;

/// A tensor whose memory stays.
pub(crate) struct FixedTensor {
    memory: CubeTensor,
    /// Burn's tensor of that memory. Its stream is that of the thread that made it: steps are recorded there, and
    /// copies are queued there.
    made: FusionTensor,
    kind: ToBackend,
    autodiff: DispatchAutodiffContext,
}

impl FixedTensor {
    /// Copies a tensor to memory of its own.
    ///
    /// # Errors
    /// The reason in words, if this cannot be done.
    pub(crate) fn new(tensor: DispatchTensor) -> Result<Self, &'static str> {
        let autodiff = tensor.autodiff;
        let (tensor, kind) = fused(tensor)?;
        let burn = tensor.client.clone();
        let values = resolved(tensor)?;
        let (client, shape, dtype) = (values.client.clone(), values.meta.shape().clone(), values.dtype);
        let handle = client.empty((shape.num_elements() * dtype.size()).max(1));
        let memory = CubeTensor::new_contiguous(client, values.device.clone(), shape, handle, dtype);
        copy(values, &memory);
        let made = registered(&burn, memory.clone(), NoOp::<Backend>::new());
        Ok(Self { memory, made, kind, autodiff })
    }

    /// Finds the values of a tensor that may be copied there. Its shape and dtype must be those of the first. `all` are
    /// the tensors that are written to before or after: their values would not be those that they have now.
    ///
    /// # Errors
    /// The reason in words, if they cannot be copied.
    pub(crate) fn values<'a>(
        &self,
        tensor: DispatchTensor,
        mut all: impl Iterator<Item = &'a Self>,
    ) -> Result<CubeTensor, &'static str> {
        if StreamId::current() != self.made.stream {
            return Err("it was made on another thread, where steps may read it at any time");
        }
        let values = resolved(fused(tensor)?.0)?;
        if values.device != self.memory.device {
            return Err("it is on another device than in the first batch");
        }
        let memory = |tensor: &CubeTensor| ptr::from_ref(tensor.handle.memory.descriptor());
        if all.any(|fixed| memory(&fixed.memory) == memory(&values)) {
            return Err("it is a tensor that stays, or a view of it");
        }
        Ok(values)
    }

    /// Copies values there, after all that the calling thread has asked for.
    pub(crate) fn copy(&self, values: CubeTensor) {
        copy(values, &self.memory);
    }

    pub(crate) fn tensor(&self) -> DispatchTensor {
        let kind = DispatchTensorKind::Cube((self.kind)(self.made.clone()));
        DispatchTensor { kind, autodiff: self.autodiff }
    }

    /// Whether a tensor is this one, and not a tensor that was computed with it.
    pub(crate) fn is(&self, tensor: DispatchTensor) -> bool {
        fused(tensor).is_ok_and(|(tensor, _)| tensor.id == self.made.id)
    }

    /// Asks CubeCL whether allocations and copies, and the work that made the copied values, went well so far. Does not
    /// wait for the device.
    ///
    /// # Errors
    /// The error that CubeCL reports.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.memory.client.check([&self.memory.handle]).map_err(|error| error.to_string())
    }
}

/// Returns Burn's tensor, and its kind.
pub(super) fn fused(tensor: DispatchTensor) -> Result<(FusionTensor, ToBackend), &'static str> {
    match tensor.kind {
        DispatchTensorKind::Cube(BackendTensor::Float(fused)) => Ok((fused, BackendTensor::Float)),
        DispatchTensorKind::Cube(BackendTensor::Int(fused)) => Ok((fused, BackendTensor::Int)),
        DispatchTensorKind::Cube(BackendTensor::Bool(fused)) => Ok((fused, BackendTensor::Bool)),
        DispatchTensorKind::Cube(BackendTensor::Quantized(_)) => Err("it is quantized"),
        DispatchTensorKind::Cube(BackendTensor::Autodiff(_)) | DispatchTensorKind::Autodiff(_) => {
            Err("autodiff follows it")
        }
        _ => Err("its device is none of CubeCL"),
    }
}

/// Returns the memory of a tensor, once all that the calling thread has asked for before is queued on its stream.
pub(super) fn resolved(tensor: FusionTensor) -> Result<CubeTensor, &'static str> {
    let client = tensor.client.clone();
    if tensor.stream != StreamId::current() {
        client.sync(|| ()); // `resolve_tensor_float` does this for the stream of the tensor
    }
    let values = client.resolve_tensor_float::<Backend>(tensor); // for CubeCL the memory of all kinds is alike
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
