//! The tensors of a batch on their way to the device. They have one dimension until their values are there.

#[cfg(feature = "cuda")]
use crate::fault::BoxError;
use crate::vocabulary::MemoryKind;
#[cfg(feature = "cuda")]
use burn::backend::{
    BackendTensor, DispatchTensorKind,
    fusion::{Fusion, FusionBackend},
};
use burn::tensor::{
    AllocationProperty, Bool, Bytes, DType, Device, Float, Int, Shape, Tensor, TensorData, kind::Basic,
};
#[cfg(feature = "cuda")]
use cubecl_runtime::server::Handle;
use std::{any::Any, ops::Range};

/// A `Tensor<D, K>`.
pub(crate) type AnyTensor = Box<dyn Any + Send>;

/// One tensor of a batch, in the bytes of its slot.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) range: Range<usize>,
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
}

/// A tensor of one dimension, of any kind. CubeCL gives tensors of several dimensions a pitched layout, whose upload is
/// a slow copy of many short rows. To reshape the tensor afterwards costs nothing.
pub(super) enum Flat {
    Float(Tensor<1>),
    Int(Tensor<1, Int>),
    Bool(Tensor<1, Bool>),
}

impl Flat {
    /// Makes a tensor on the device, with any values. For a part without values it has one value.
    pub(super) fn empty(part: &Part, device: &Device) -> Self {
        let (shape, dtype) = ([part.shape.num_elements().max(1)], stored(part.dtype, device));
        match dtype {
            DType::Bool(_) => Self::Bool(Tensor::empty(shape, (device, dtype))),
            dtype if dtype.is_float() => Self::Float(Tensor::empty(shape, (device, dtype))),
            dtype => Self::Int(Tensor::empty(shape, (device, dtype))),
        }
    }

    /// Makes a tensor of a part of some bytes, copied by Burn.
    pub(super) fn of(bytes: &bytes::Bytes, kind: MemoryKind, part: &Part, device: &Device) -> Self {
        if part.range.is_empty() {
            return Self::empty(part, device);
        }
        let property = if kind.is_pinned() { AllocationProperty::Pinned } else { AllocationProperty::Other };
        let bytes = Bytes::from_shared(bytes.slice(part.range.clone()), property);
        let dtype = stored(part.dtype, device);
        let data = TensorData::from_bytes(bytes, Shape::new([part.shape.num_elements()]), dtype);
        match dtype {
            DType::Bool(_) => Self::Bool(Tensor::from_data(data, (device, dtype))),
            dtype if dtype.is_float() => Self::Float(Tensor::from_data(data, (device, dtype))),
            dtype => Self::Int(Tensor::from_data(data, (device, dtype))),
        }
    }

    /// Returns where its values are.
    #[cfg(feature = "cuda")]
    pub(super) fn handle(&self) -> Result<Handle, BoxError> {
        match self {
            Self::Float(tensor) => handle(tensor),
            Self::Int(tensor) => handle(tensor),
            Self::Bool(tensor) => handle(tensor),
        }
    }

    pub(super) fn reshaped(self, part: &Part, device: &Device) -> AnyTensor {
        match self {
            Self::Float(tensor) => reshaped::<Float>(tensor, part, device),
            Self::Int(tensor) => reshaped::<Int>(tensor, part, device),
            Self::Bool(tensor) => reshaped::<Bool>(tensor, part, device),
        }
    }
}

/// Returns the dtype in which the device stores values. If it stores booleans in a byte too, they are taken as they
/// are.
fn stored(dtype: DType, device: &Device) -> DType {
    if !dtype.is_bool() {
        return dtype;
    }
    let native = DType::from(device.settings().bool_dtype);
    if native.size() == 1 && dtype.size() == 1 { native } else { dtype }
}

fn reshaped<K: Basic + 'static>(flat: Tensor<1, K>, part: &Part, device: &Device) -> AnyTensor {
    let shape = &part.shape;
    macro_rules! of_rank {
        ($($rank:literal)*) => {
            match shape.num_dims() {
                // Burn reads a 0 in a reshape as "as it was".
                $($rank if shape.num_elements() == 0 => {
                    Box::new(Tensor::<$rank, K>::empty(shape.clone(), (device, stored(part.dtype, device)))) as AnyTensor
                })*
                $($rank => Box::new(flat.reshape::<$rank, _>(shape.clone())) as AnyTensor,)*
                rank => unreachable!("layouts have at most 8 dimensions, not {rank}"),
            }
        };
    }
    of_rank!(1 2 3 4 5 6 7 8)
}

/// Returns where a tensor's values are, on the device.
#[cfg(feature = "cuda")]
fn handle<K: Basic>(tensor: &Tensor<1, K>) -> Result<Handle, BoxError> {
    let kind = match tensor.clone().into_dispatch().kind {
        DispatchTensorKind::Autodiff(inner) => *inner,
        kind => kind,
    };
    let DispatchTensorKind::Cube(tensor) = kind else { return Err("the tensor does not belong to CubeCL".into()) };
    Ok(resolved(tensor).ok_or("the tensor is of a kind that cannot be written")?.handle)
}

/// Returns the tensor behind a tensor of Burn's fusion.
#[cfg(feature = "cuda")]
fn resolved<B, T>(tensor: BackendTensor<Fusion<B>>) -> Option<T>
where
    B: FusionBackend<FloatTensorPrimitive = T, IntTensorPrimitive = T, BoolTensorPrimitive = T>,
{
    Some(match tensor {
        BackendTensor::Float(tensor) => tensor.client.clone().resolve_tensor_float::<B>(tensor),
        BackendTensor::Int(tensor) => tensor.client.clone().resolve_tensor_int::<B>(tensor),
        BackendTensor::Bool(tensor) => tensor.client.clone().resolve_tensor_bool::<B>(tensor),
        _ => return None,
    })
}
