//! The tensors of a batch on their way to the device.

use crate::{
    fault::{BoxError, Error},
    image_rows::ImageRow,
    vocabulary::MemoryKind,
};
use burn::tensor::{
    AllocationProperty, Bool, Bytes, DType, Device, Float, Int, Shape, Tensor, TensorData, kind::Basic,
};
use std::{any::Any, ops::Range, sync::Arc};

/// A `Tensor<D, K>`.
pub(crate) type AnyTensor = Box<dyn Any + Send>;

/// One tensor of a batch, in the bytes of its slot.
#[derive(Debug, Clone)]
pub(crate) struct FlatTensor {
    pub(crate) range: Range<usize>,
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    /// The value for each byte of a pixel, if the rows are images that the device decodes.
    pub(crate) images: Option<Arc<[u8]>>,
}

impl FlatTensor {
    /// The bytes of the tensor.
    pub(crate) fn bytes(&self) -> usize {
        self.shape.num_elements() * self.dtype.size()
    }
}

/// Decodes the file of a row on the host, as bytes in planes. It is for files that the device refuses.
pub(crate) type Redo<'a> = &'a dyn Fn(usize, &ImageRow, &[u8]) -> Result<Vec<u8>, Error>;

/// Why the device made no images.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only CUDA decodes on the device"))]
pub(crate) enum Failure {
    /// A file is refused by the device, and by the host too.
    Sample(Error),
    Device(BoxError),
    /// A wait failed. The device may still read the bytes that it was given.
    Lost(BoxError),
}

/// A tensor of a batch that was copied to the device: a call makes Burn's tensor.
#[derive(derive_more::Debug)]
pub(crate) struct DeviceTensor(#[debug(skip)] Box<dyn FnOnce() -> AnyTensor + Send>);

impl From<AnyTensor> for DeviceTensor {
    fn from(tensor: AnyTensor) -> Self {
        Self(Box::new(|| tensor))
    }
}

impl DeviceTensor {
    /// `make` makes the tensor of memory that is on the device.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "Burn makes tensors at once"))]
    pub(super) fn new(make: impl FnOnce() -> AnyTensor + Send + 'static) -> Self {
        Self(Box::new(make))
    }

    /// Returns the `Tensor<D, K>`, which belongs to the calling thread.
    pub(crate) fn tensor(self) -> AnyTensor {
        (self.0)()
    }
}

/// Makes the tensor of `part`, whose values are in `bytes`, copied by Burn.
pub(super) fn tensor_of(bytes: &bytes::Bytes, kind: MemoryKind, part: &FlatTensor, device: &Device) -> AnyTensor {
    let property = if kind.is_pinned() { AllocationProperty::Pinned } else { AllocationProperty::Other };
    let values = (part.bytes() > 0).then(|| Bytes::from_shared(bytes.slice(part.range.clone()), property));
    made(values, part, device)
}

/// Makes the tensor of `part` from its values, or without values if it has none.
pub(super) fn made(values: Option<Bytes>, part: &FlatTensor, device: &Device) -> AnyTensor {
    let dtype = stored(part.dtype, device);
    match dtype {
        DType::Bool(_) => shaped::<Bool>(values, part, (device, dtype)),
        dtype if dtype.is_float() => shaped::<Float>(values, part, (device, dtype)),
        _ => shaped::<Int>(values, part, (device, dtype)),
    }
}

/// Returns the dtype in which the device stores values. If the device also stores booleans as bytes, their bytes are
/// used unchanged.
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

/// CubeCL gives multi-dimensional tensors a pitched layout, whose upload is a slow copy of many short rows. So the
/// tensor is made with one dimension and then reshaped, which costs nothing.
fn shaped<K: Basic + 'static>(
    values: Option<Bytes>,
    part: &FlatTensor,
    (device, dtype): (&Device, DType),
) -> AnyTensor {
    let shape = &part.shape;
    with_rank!(shape, RANK => {
        let tensor: Tensor<RANK, K> = match values {
            // Burn reads a 0 in a reshape as "as it was".
            None => Tensor::empty(shape.clone(), (device, dtype)),
            Some(values) => {
                let flat = TensorData::from_bytes(values, Shape::new([shape.num_elements()]), dtype);
                Tensor::<1, K>::from_data(flat, (device, dtype)).reshape(shape.clone())
            }
        };
        Box::new(tensor) as AnyTensor
    })
}
