//! A Burn batcher, and the way to the tensors of its batches.

use crate::{
    device::{DeviceTensor, MapTensors, TensorMapper},
    fault::BoxError,
};
use burn::{
    data::dataloader::batcher::Batcher,
    tensor::{DType, Device, Tensor, TensorData, kind::Basic},
};

/// A batcher of any type, and the way to the tensors of its batches.
pub(crate) trait ItemBatcher<I, O>: Batcher<I, O> {
    /// Takes the values out of a batch's tensors, and leaves empty tensors of the host.
    fn take_values(&self, batch: O, host: &Device) -> (O, Vec<TensorData>);

    /// Puts tensors into the places of the empty ones, in the same order.
    ///
    /// # Errors
    /// If there are more tensors than places.
    fn put_tensors(&self, batch: O, tensors: Vec<DeviceTensor>) -> Result<O, BoxError>;

    /// Leaves the tensors where they are. A mapper that computes makes the same batch here as on an accelerator.
    fn leave_tensors(&self, batch: O) -> O;
}

impl<I, O: MapTensors, B: Batcher<I, O>> ItemBatcher<I, O> for B {
    fn take_values(&self, batch: O, host: &Device) -> (O, Vec<TensorData>) {
        let mut taker = TensorTaker { host: host.clone(), parts: Vec::new() };
        (batch.map_tensors(&mut taker), taker.parts)
    }

    fn put_tensors(&self, batch: O, tensors: Vec<DeviceTensor>) -> Result<O, BoxError> {
        let mut placer = TensorPlacer { tensors: tensors.into_iter() };
        let batch = batch.map_tensors(&mut placer);
        if placer.tensors.len() > 0 { Err(UNSTEADY.into()) } else { Ok(batch) }
    }

    fn leave_tensors(&self, batch: O) -> O {
        batch.map_tensors(&mut TensorKeeper)
    }
}

const UNSTEADY: &str = "MapTensors must visit the same tensors in the same order each time";

/// Leaves tensors as they are.
struct TensorKeeper;

impl TensorMapper for TensorKeeper {
    fn map<const D: usize, K: Basic + 'static>(&mut self, tensor: Tensor<D, K>) -> Tensor<D, K> {
        tensor
    }
}

/// Takes the values out of a batch's tensors and leaves empty ones.
struct TensorTaker {
    host: Device,
    parts: Vec<TensorData>,
}

impl TensorMapper for TensorTaker {
    fn map<const D: usize, K: Basic + 'static>(&mut self, tensor: Tensor<D, K>) -> Tensor<D, K> {
        assert!(!matches!(tensor.dtype(), DType::QFloat(_)), "a quantised tensor cannot be moved: dequantise it first");
        self.parts.push(tensor.into_data());
        Tensor::empty([0; D], &self.host)
    }
}

/// Puts tensors on the device into the places of the empty ones, in the same order.
struct TensorPlacer {
    tensors: std::vec::IntoIter<DeviceTensor>,
}

impl TensorMapper for TensorPlacer {
    /// # Panics
    /// If the batch's `MapTensors` does not visit the same tensors as before; `finish` reports it.
    fn map<const D: usize, K: Basic + 'static>(&mut self, _: Tensor<D, K>) -> Tensor<D, K> {
        let tensor = self.tensors.next().and_then(|tensor| tensor.tensor().downcast().ok());
        *tensor.unwrap_or_else(|| panic!("{UNSTEADY}"))
    }
}
