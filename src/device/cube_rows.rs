//! Parts of a tensor of CubeCL, without an operation of Burn's fusion for each.

use super::{
    cube_fixed::{ToBackend, fused, resolved},
    cuda_tensor::{Backend, Client, CubeTensor, registered},
};
use burn::{
    backend::{DispatchAutodiffContext, DispatchTensor, DispatchTensorKind, fusion::NoOp, ops::FloatTensorOps},
    tensor::{Slice, StreamId, Tensor, kind::Autodiff},
};
use std::ops::Range;

/// The memory of a tensor. Its parts are tensors that refer to it, where their alignment allows it.
///
/// A slice by Burn's fusion is an operation with its own numbers. So fusion knows no plan for the steps that use it,
/// and looks for one at each batch.
pub(super) struct CubeRows {
    memory: CubeTensor,
    burn: Client,
    kind: ToBackend,
    tracked: bool,
    /// The stream of the thread that gathered the rows. Tensors are made for this one alone.
    stream: StreamId,
}

impl CubeRows {
    /// Takes the memory of a tensor, once all that the calling thread has asked for before is queued. Returns `None` if
    /// the tensor is not one of CubeCL, if a step is recorded, or if its autodiff is not Burn's default.
    pub(super) fn of<const D: usize, K: Autodiff>(tensor: &Tensor<D, K>) -> Option<Self> {
        let tracked = tensor.is_autodiff();
        let usual = DispatchAutodiffContext::Enabled(Default::default());
        if tracked && tensor.clone().into_dispatch().autodiff != usual {
            return None;
        }
        let (fused, kind) = fused(tensor.clone().inner().into_dispatch()).ok()?;
        let burn = fused.client.clone();
        Some(Self { memory: resolved(fused).ok()?, burn, kind, tracked, stream: StreamId::current() })
    }

    /// Makes a tensor of a part, for the calling thread. Returns `None` on another thread than that of [`of`](Self::of).
    pub(super) fn part<const D: usize, K: Autodiff>(&self, ranges: &[Range<usize>; D]) -> Option<Tensor<D, K>> {
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
