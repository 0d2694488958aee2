//! A Burn batcher over a dataset: what all of its batches share.

use super::samples::Samples;
use crate::{
    device::{MapTensors, Target, TensorMapper, Uploaded},
    fault::BoxError,
};
use burn::{
    data::dataloader::batcher::Batcher,
    tensor::{DType, Device, Tensor, TensorData, kind::Basic},
};
use std::sync::Arc;

/// A Burn `Batcher` over a dataset.
pub(crate) struct ItemsSource<I, O> {
    pub(crate) samples: Arc<Samples<I>>,
    pub(crate) batcher: Arc<dyn ItemBatcher<I, O>>,
    /// Where the batcher is to run, if the user says so.
    pub(crate) asked: Option<Device>,
    /// Where the batcher runs: the target itself if that is a CPU backend.
    pub(crate) host_device: Device,
    pub(crate) target: Target,
}

/// A batcher of any type, and the way to the tensors of its batches.
pub(crate) trait ItemBatcher<I, O>: Batcher<I, O> {
    /// Takes the values out of a batch's tensors, and leaves empty tensors of the host.
    fn take_values(&self, batch: O, host: &Device) -> (O, Vec<TensorData>);

    /// Puts tensors into the places of the empty ones, in the same order.
    ///
    /// # Errors
    /// If there are more tensors than places.
    fn put_tensors(&self, batch: O, tensors: Vec<Uploaded>) -> Result<O, BoxError>;

    /// Leaves the tensors where they are. A mapper that computes makes the same batch here as on an accelerator.
    fn leave_tensors(&self, batch: O) -> O;
}

impl<I, O: MapTensors, B: Batcher<I, O>> ItemBatcher<I, O> for B {
    fn take_values(&self, batch: O, host: &Device) -> (O, Vec<TensorData>) {
        let mut unpack = Unpack { host: host.clone(), parts: Vec::new() };
        (batch.map_tensors(&mut unpack), unpack.parts)
    }

    fn put_tensors(&self, batch: O, tensors: Vec<Uploaded>) -> Result<O, BoxError> {
        let mut places = Placed { tensors: tensors.into_iter() };
        let batch = batch.map_tensors(&mut places);
        if places.tensors.len() > 0 { Err(UNSTEADY.into()) } else { Ok(batch) }
    }

    fn leave_tensors(&self, batch: O) -> O {
        batch.map_tensors(&mut Unmoved)
    }
}

const UNSTEADY: &str = "MapTensors must visit the same tensors in the same order each time";

/// Leaves tensors as they are.
struct Unmoved;

impl TensorMapper for Unmoved {
    fn map<const D: usize, K: Basic + 'static>(&mut self, tensor: Tensor<D, K>) -> Tensor<D, K> {
        tensor
    }
}

/// Takes the values out of a batch's tensors and leaves empty ones.
struct Unpack {
    host: Device,
    parts: Vec<TensorData>,
}

impl TensorMapper for Unpack {
    fn map<const D: usize, K: Basic + 'static>(&mut self, tensor: Tensor<D, K>) -> Tensor<D, K> {
        assert!(!matches!(tensor.dtype(), DType::QFloat(_)), "a quantised tensor cannot be moved: dequantise it first");
        self.parts.push(tensor.into_data());
        Tensor::empty([0; D], &self.host)
    }
}

/// Puts tensors on the device into the places of the empty ones, in the same order.
struct Placed {
    tensors: std::vec::IntoIter<Uploaded>,
}

impl TensorMapper for Placed {
    /// # Panics
    /// If the batch's `MapTensors` does not visit the same tensors as before; `finish` reports it.
    fn map<const D: usize, K: Basic + 'static>(&mut self, _: Tensor<D, K>) -> Tensor<D, K> {
        let tensor = self.tensors.next().and_then(|tensor| tensor.tensor().downcast().ok());
        *tensor.unwrap_or_else(|| panic!("{UNSTEADY}"))
    }
}
