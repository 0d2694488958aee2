//! The rows of all samples of a dataset, in one tensor per field on the device. Batches are gathered there with Burn's
//! own operations, so it works on every backend.

use super::{
    cuda,
    flat::{AnyTensor, stored, with_rank},
};
use crate::fault::Error;
use burn::tensor::{
    Bool, DType, Device, Int, Shape, Tensor, TensorData,
    kind::{Autodiff, Basic},
    s,
};
use std::{array::from_fn, ops::Range};

/// The rows of one field, `[rows, width]`, without autodiff. All values of a row lie side by side.
#[derive(Debug, Clone)]
pub(crate) enum Table {
    Float(Tensor<2>),
    Int(Tensor<2, Int>),
    Bool(Tensor<2, Bool>),
}

/// Makes a value of the tensor of any kind.
macro_rules! of_any {
    ($table:expr, $tensor:ident => $value:expr) => {
        match $table {
            Table::Float($tensor) => $value,
            Table::Int($tensor) => $value,
            Table::Bool($tensor) => $value,
        }
    };
}

/// Makes a table of the tensor of any kind.
macro_rules! map_any {
    ($table:expr, $tensor:ident => $value:expr) => {
        match $table {
            Table::Float($tensor) => Table::Float($value),
            Table::Int($tensor) => Table::Int($value),
            Table::Bool($tensor) => Table::Bool($value),
        }
    };
}

impl Table {
    /// Makes a table whose values are all `pad`, or any values without it.
    pub(crate) fn new(rows: usize, width: usize, dtype: DType, pad: Option<&[u8]>, device: &Device) -> Self {
        let dtype = stored(dtype, device);
        match dtype {
            DType::Bool(_) => Self::Bool(matrix(rows, width, dtype, pad, device)),
            dtype if dtype.is_float() => Self::Float(matrix(rows, width, dtype, pad, device)),
            dtype => Self::Int(matrix(rows, width, dtype, pad, device)),
        }
    }

    /// The number of values of a row.
    pub(crate) fn width(&self) -> usize {
        of_any!(self, tensor => tensor.dims()[1])
    }

    /// The bytes of all rows.
    pub(crate) fn bytes(&self) -> usize {
        of_any!(self, tensor => tensor.shape().num_elements() * tensor.dtype().size())
    }

    /// Writes the rows of a batch, whose tensor has this shape, to the rows from `first` on, in place.
    ///
    /// # Errors
    /// [`Error::Ended`] if the tensor has another rank or kind.
    pub(crate) fn write(self, first: usize, batch: AnyTensor, shape: &Shape) -> Result<Self, Error> {
        Ok(match self {
            Self::Float(table) => Self::Float(written(table, first, batch, shape)?),
            Self::Int(table) => Self::Int(written(table, first, batch, shape)?),
            Self::Bool(table) => Self::Bool(written(table, first, batch, shape)?),
        })
    }

    /// Cuts all rows to their first `width` values. Meanwhile the old table and the new one are both in memory.
    pub(crate) fn cut(self, width: usize) -> Self {
        map_any!(self, tensor => {
            let [rows, _] = tensor.dims();
            let narrow = matrix(rows, width, tensor.dtype(), None, &tensor.device());
            narrow.slice_assign([0..rows, 0..width], tensor.slice([0..rows, 0..width]))
        })
    }

    /// The same rows on another device.
    pub(crate) fn to_device(&self, device: &Device) -> Self {
        let stays = || map_any!(self, tensor => tensor.clone().to_device(device));
        device.memory_persistent_allocations((), |()| stays())
    }

    /// Gathers the rows with these numbers, as a tensor of this shape. Batches are cut from it. It has autodiff if the
    /// numbers have.
    pub(crate) fn gather(&self, rows: Tensor<1, Int>, shape: &Shape) -> GatheredRows {
        match self {
            Self::Float(table) => gathered(table.clone().select(0, rows), shape),
            Self::Int(table) => gathered(table.clone().select(0, rows), shape),
            Self::Bool(table) => gathered(still_bool(table.clone().select(0, rows), table.dtype()), shape),
        }
    }
}

/// Makes the tensor of a batch from gathered rows: the rows from this number on that the shape has room for. Burn's
/// backends only refer to the memory of the gathered rows, where their alignment allows it.
pub(crate) type GatheredRows = Box<dyn Fn(usize, &Shape) -> AnyTensor + Send + Sync>;

/// Makes a two-dimensional tensor. It is allocated with one dimension, because CubeCL would pad its rows. It is
/// allocated as persistent memory: other device memory is in pages, whose size would follow the largest tensor.
fn matrix<K: Basic>(rows: usize, width: usize, dtype: DType, pad: Option<&[u8]>, device: &Device) -> Tensor<2, K> {
    let values = rows * width;
    let empty = device.memory_persistent_allocations((), |()| Tensor::<1, K>::empty([values], (device, dtype)));
    let flat = match pad {
        None => empty,
        Some(pad) => {
            let pad = TensorData::from_bytes_vec(pad.to_vec(), Shape::new([1]), dtype);
            let pad = Tensor::<1, K>::from_data(pad, (device, dtype)).expand([values]);
            empty.slice_assign(s![..], pad)
        }
    };
    flat.reshape([rows, width])
}

fn written<K: Basic + 'static>(
    table: Tensor<2, K>,
    first: usize,
    batch: AnyTensor,
    shape: &Shape,
) -> Result<Tensor<2, K>, Error> {
    let rows = shape.as_slice()[0];
    let width = shape.num_elements() / rows;
    let batch: Tensor<2, K> = with_rank!(shape, RANK => {
        batch.downcast::<Tensor<RANK, K>>().map_err(|_| Error::Ended)?.reshape([rows, width])
    });
    Ok(table.slice_assign([first..first + rows, 0..width], batch))
}

/// Burn's Flex returns selected booleans as bytes. This restores their dtype, without a copy.
fn still_bool(rows: Tensor<2, Bool>, dtype: DType) -> Tensor<2, Bool> {
    if rows.dtype() == dtype {
        return rows;
    }
    let device = rows.device();
    let (bytes, shape, _) = rows.into_data().into_parts();
    Tensor::from_data(TensorData::from_bytes(bytes, shape, dtype), (&device, dtype))
}

fn gathered<K: Autodiff + 'static>(rows: Tensor<2, K>, shape: &Shape) -> GatheredRows {
    let [count, width] = rows.dims();
    let wanted = shape.num_elements() / count;
    let rows = if wanted == width { rows } else { rows.slice([0..count, 0..wanted]) };
    with_rank!(shape, RANK => {
        let rows = rows.reshape::<RANK, _>(shape.clone());
        let part = cuda::parts(&rows);
        Box::new(move |first, shape: &Shape| {
            let lengths = shape.as_slice();
            if lengths == rows.dims() {
                return Box::new(rows.clone()) as AnyTensor;
            }
            let ranges: [Range<usize>; RANK] = from_fn(|dim| match dim {
                0 => first..first + lengths[0],
                _ => 0..lengths[dim],
            });
            let part = part.as_ref().and_then(|part| part(&ranges));
            Box::new(part.unwrap_or_else(|| rows.clone().slice(ranges))) as AnyTensor
        }) as GatheredRows
    })
}
