//! The tensors of a batch on their way to the device. They have one dimension until their values are there.

use crate::{
    fault::{BoxError, Error},
    memory::{PictureRow, Values},
    vocabulary::MemoryKind,
};
use burn::tensor::{
    AllocationProperty, Bool, Bytes, DType, Device, Float, Int, Shape, Tensor, TensorData, kind::Basic,
};
#[cfg(feature = "cuda")]
use burn::{backend::DispatchTensor, tensor::kind::Autodiff};
use std::{any::Any, ops::Range, sync::Arc};

/// A `Tensor<D, K>`.
pub(crate) type AnyTensor = Box<dyn Any + Send>;

/// One tensor of a batch, in the bytes of its slot.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) range: Range<usize>,
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    /// The values of bytes, if the device makes the tensor of rows of images.
    pub(crate) images: Option<Arc<Values>>,
}

impl Part {
    /// The bytes of the tensor.
    pub(crate) fn bytes(&self) -> usize {
        self.shape.num_elements() * self.dtype.size()
    }
}

/// Decodes the file of a row on the host, as bytes in planes. For files that the device refuses.
pub(crate) type Redo<'a> = &'a dyn Fn(usize, &PictureRow, &[u8]) -> Result<Vec<u8>, Error>;

/// Why the device made no images.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only CUDA decodes on the device"))]
pub(crate) enum Failure {
    /// A file is refused by the device, and by the host too.
    Sample(Error),
    Device(BoxError),
    /// A wait failed. The device may still read what it was given.
    Lost(BoxError),
}

/// A tensor of a batch that was copied to the device.
#[derive(derive_more::Debug)]
pub(crate) enum Uploaded {
    Tensor(#[debug(skip)] AnyTensor),
    /// Memory of the device. The call makes a tensor of it.
    #[cfg(feature = "cuda")]
    Memory(#[debug(skip)] Box<dyn FnOnce() -> AnyTensor + Send>),
}

impl Uploaded {
    /// Returns the `Tensor<D, K>`, which belongs to the calling thread.
    pub(crate) fn tensor(self) -> AnyTensor {
        match self {
            Self::Tensor(tensor) => tensor,
            #[cfg(feature = "cuda")]
            Self::Memory(make) => make(),
        }
    }
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
pub(super) fn stored(dtype: DType, device: &Device) -> DType {
    if !dtype.is_bool() {
        return dtype;
    }
    let native = DType::from(device.settings().bool_dtype);
    if native.size() == 1 && dtype.size() == 1 { native } else { dtype }
}

/// Calls code with the number of a shape's dimensions as a constant.
macro_rules! with_rank {
    ($shape:expr, $rank:ident => $code:expr) => {
        with_rank!(@ $shape, $rank => $code; 1 2 3 4 5 6 7 8)
    };
    (@ $shape:expr, $rank:ident => $code:expr; $($number:literal)*) => {
        match $shape.num_dims() {
            $($number => {
                const $rank: usize = $number;
                $code
            })*
            rank => unreachable!("layouts have at most 8 dimensions, not {rank}"),
        }
    };
}

pub(super) use with_rank;

fn reshaped<K: Basic + 'static>(flat: Tensor<1, K>, part: &Part, device: &Device) -> AnyTensor {
    let shape = &part.shape;
    with_rank!(shape, RANK => {
        // Burn reads a 0 in a reshape as "as it was".
        let tensor: Tensor<RANK, K> = match shape.num_elements() {
            0 => Tensor::empty(shape.clone(), (device, stored(part.dtype, device))),
            _ => flat.reshape(shape.clone()),
        };
        Box::new(tensor) as AnyTensor
    })
}

/// Makes a tensor of a part from Burn's inner tensor.
#[cfg(feature = "cuda")]
pub(super) fn ranked<K: Autodiff + 'static>(inner: DispatchTensor, part: &Part, autodiff: bool) -> AnyTensor {
    with_rank!(part.shape, RANK => {
        let tensor = Tensor::<RANK, K>::from_dispatch(inner);
        Box::new(if autodiff { tensor.autodiff() } else { tensor }) as AnyTensor
    })
}
