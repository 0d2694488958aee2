//! Visits the tensors of a Burn batcher's batches.

use crate::device::{DeviceTensor, TensorMapper};
use burn::tensor::{DType, Device, Tensor, TensorData, kind::Basic};
use std::vec;

/// The error for a batch whose `MapTensors` visits other tensors than before.
pub(super) const UNSTEADY: &str = "MapTensors must visit the same tensors in the same order each time";

/// What is done to each tensor of a batch.
pub(crate) enum TensorVisit<'a> {
    /// Leaves the tensors in place, so that a `MapTensors` that computes makes the same batch as on an accelerator.
    Leave,
    /// Takes the values out, and leaves empty tensors on the host.
    Take(&'a Device, &'a mut Vec<TensorData>),
    /// Puts these tensors in place of the empty ones.
    Put(&'a mut vec::IntoIter<DeviceTensor>),
}

impl TensorMapper for TensorVisit<'_> {
    /// # Panics
    /// If a tensor is quantised, or if the batch's `MapTensors` does not visit the same tensors as before. The caller
    /// reports it.
    fn map<const D: usize, K: Basic + 'static>(&mut self, tensor: Tensor<D, K>) -> Tensor<D, K> {
        match self {
            Self::Leave => tensor,
            Self::Take(host, values) => {
                let is_quantised = matches!(tensor.dtype(), DType::QFloat(_));
                assert!(!is_quantised, "a quantised tensor cannot be moved: dequantise it first");
                values.push(tensor.into_data());
                Tensor::empty([0; D], *host)
            }
            Self::Put(tensors) => {
                let tensor = tensors.next().and_then(|tensor| tensor.tensor().downcast().ok());
                *tensor.unwrap_or_else(|| panic!("{UNSTEADY}"))
            }
        }
    }
}
