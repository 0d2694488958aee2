//! Parts of a CubeCL tensor, without a Burn fusion operation for each.

use super::tensor::{Backend, Client, CubeTensor, FusionTensor, registered};
use burn::{
    backend::{
        BackendTensor, Cube, DispatchAutodiffContext, DispatchTensor, DispatchTensorKind, fusion::NoOp,
        ops::FloatTensorOps,
    },
    tensor::{Slice, StreamId, Tensor, kind::Autodiff},
};
use std::ops::Range;

/// Makes Burn's tensor of one kind: float, int or bool.
type ToBackend = fn(FusionTensor) -> BackendTensor<Cube>;

/// The memory of a tensor. Its parts are tensors that refer to it, where their alignment allows it.
///
/// A slice by Burn's fusion is an operation with different numbers each time. So fusion would have no cached plan for
/// the steps that use it, and would search for one at each batch.
struct CubeRows {
    memory: CubeTensor,
    burn: Client,
    kind: ToBackend,
    tracked: bool,
    /// The stream of the thread that gathered the rows. Tensors are made only for this thread.
    stream: StreamId,
}

impl CubeRows {
    /// Takes the memory of a tensor, after everything that the calling thread has requested before is queued. Returns
    /// `None` if the tensor is not one of CubeCL, if a step is recorded, or if its autodiff is not Burn's default.
    fn of<const D: usize, K: Autodiff>(tensor: &Tensor<D, K>) -> Option<Self> {
        let tracked = tensor.is_autodiff();
        let usual = DispatchAutodiffContext::Enabled(Default::default());
        if tracked && tensor.clone().into_dispatch().autodiff != usual {
            return None;
        }
        let (fused, kind) = fused(tensor.clone().inner().into_dispatch())?;
        let burn = fused.client.clone();
        Some(Self { memory: resolved(fused)?, burn, kind, tracked, stream: StreamId::current() })
    }

    /// Makes a tensor of a part, for the calling thread. Returns `None` if [`of`](Self::of) was called on another
    /// thread.
    fn part<const D: usize, K: Autodiff>(&self, ranges: &[Range<usize>; D]) -> Option<Tensor<D, K>> {
        if StreamId::current() != self.stream {
            return None;
        }
        let slices = ranges.clone().map(Slice::from);
        let part = Backend::float_slice(self.memory.clone(), &slices); // for CubeCL the memory of all kinds is alike
        let made = registered(&self.burn, part, NoOp::<Backend>::new());
        let kind = DispatchTensorKind::Cube((self.kind)(made));
        let plain = Tensor::from_dispatch(DispatchTensor { kind, autodiff: DispatchAutodiffContext::Disabled });
        Some(if self.tracked { plain.autodiff() } else { plain })
    }
}

/// Returns a function that makes parts of a tensor with [`CubeRows`].
pub(in crate::device) fn parts<const D: usize, K: Autodiff>(
    tensor: &Tensor<D, K>,
) -> Option<impl Fn(&[Range<usize>; D]) -> Option<Tensor<D, K>> + use<D, K>> {
    let rows = CubeRows::of(tensor)?;
    Some(move |ranges: &[Range<usize>; D]| rows.part(ranges))
}

/// Returns Burn's tensor and its kind. `None` if it is quantized, tracked by autodiff, or not on a CubeCL device.
pub(in crate::device) fn fused(tensor: DispatchTensor) -> Option<(FusionTensor, ToBackend)> {
    match tensor.kind {
        DispatchTensorKind::Cube(BackendTensor::Float(fused)) => Some((fused, BackendTensor::Float)),
        DispatchTensorKind::Cube(BackendTensor::Int(fused)) => Some((fused, BackendTensor::Int)),
        DispatchTensorKind::Cube(BackendTensor::Bool(fused)) => Some((fused, BackendTensor::Bool)),
        _ => None,
    }
}

/// Returns the memory of a tensor, after everything that the calling thread has requested before is queued on its
/// stream. `None` while a step is recorded.
pub(in crate::device) fn resolved(tensor: FusionTensor) -> Option<CubeTensor> {
    let client = tensor.client.clone();
    if tensor.stream != StreamId::current() {
        client.sync(|| ()); // `resolve_tensor_float` does this for the stream of the tensor
    }
    let values = client.resolve_tensor_float::<Backend>(tensor); // for CubeCL the memory of all kinds is alike
    (!values.client.is_capturing()).then_some(values)
}
