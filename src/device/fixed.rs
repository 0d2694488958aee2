//! Tensors whose memory stays where it is, for steps that are recorded once.

use super::target::Target;
#[cfg(feature = "cuda")]
use super::{cube_fixed::FixedTensor, cuda_tensor::CubeTensor};
use burn::tensor::{DType, Shape, Tensor, kind::Basic};

/// The values of a tensor that are to be copied. There are none where a tensor is replaced.
#[derive(Default)]
pub(super) struct Values(#[cfg(feature = "cuda")] Option<CubeTensor>);

/// One tensor of a batch that stays where it is.
pub(super) struct Fixed {
    shape: Shape,
    dtype: DType,
    /// `None` on devices that record no addresses: there a tensor is replaced.
    #[cfg(feature = "cuda")]
    memory: Option<FixedTensor>,
}

impl Fixed {
    /// Gives a tensor memory of its own. Returns the tensor that stays.
    ///
    /// # Errors
    /// The reason in words, if the device may record steps and this crate cannot write to its memory.
    pub(super) fn new<const D: usize, K: Basic>(tensor: Tensor<D, K>) -> Result<(Self, Tensor<D, K>), &'static str> {
        let (shape, dtype, device) = (tensor.shape(), tensor.dtype(), tensor.device());
        #[cfg(feature = "cuda")]
        let reason = match FixedTensor::new(tensor.clone().into_dispatch()) {
            Ok(memory) => {
                let tensor = Tensor::from_dispatch(memory.tensor());
                return Ok((Self { shape, dtype, memory: Some(memory) }, tensor));
            }
            Err(reason) => reason,
        };
        #[cfg(not(feature = "cuda"))]
        let reason = "on an accelerator this needs the feature `cuda`";
        if !Target::of(device).host {
            return Err(reason);
        }
        let fixed = Self {
            shape,
            dtype,
            #[cfg(feature = "cuda")]
            memory: None,
        };
        Ok((fixed, tensor))
    }

    /// Checks whether a tensor could take the place of this one.
    fn fits<const D: usize, K: Basic>(&self, tensor: &Tensor<D, K>) -> Result<(), String> {
        if (tensor.shape(), tensor.dtype()) == (self.shape.clone(), self.dtype) {
            return Ok(());
        }
        let name = |shape: &Shape, dtype: DType| format!("{:?} of {}", shape.as_slice(), dtype.name());
        let (was, is) = (name(&self.shape, self.dtype), name(&tensor.shape(), tensor.dtype()));
        Err(format!("it is {is}, and was {was} in the first batch"))
    }

    /// Whether a tensor is the one that stays. Always true on devices where tensors are replaced.
    pub(super) fn is<const D: usize, K: Basic>(&self, tensor: &Tensor<D, K>) -> bool {
        #[cfg(feature = "cuda")]
        if let Some(memory) = &self.memory {
            return memory.is(tensor.clone().into_dispatch());
        }
        let _ = tensor;
        true
    }

    /// Finds the values of a tensor that may take the place of this one. `all` are the tensors of the batch that stay.
    /// Returns the values and the tensor to use once they are copied. Nothing has changed before.
    ///
    /// # Errors
    /// The reason in words, if the tensor does not fit.
    pub(super) fn values<const D: usize, K: Basic>(
        &self,
        tensor: Tensor<D, K>,
        all: &[Self],
    ) -> Result<(Values, Tensor<D, K>), String> {
        self.fits(&tensor)?;
        #[cfg(feature = "cuda")]
        if let Some(memory) = &self.memory {
            let values = memory.values(tensor.into_dispatch(), all.iter().filter_map(|fixed| fixed.memory.as_ref()))?;
            return Ok((Values(Some(values)), Tensor::from_dispatch(memory.tensor())));
        }
        let _ = all;
        Ok((Values::default(), tensor))
    }

    /// Copies values to the memory that stays.
    pub(super) fn copy(&self, values: Values) {
        #[cfg(feature = "cuda")]
        if let (Some(memory), Values(Some(values))) = (&self.memory, values) {
            memory.copy(values);
        }
        #[cfg(not(feature = "cuda"))]
        let Values() = values;
    }

    /// Asks whether the last copy went well, as far as that is known. Does not wait for the device.
    ///
    /// # Errors
    /// The error that the device reports.
    pub(super) fn check(&self) -> Result<(), String> {
        #[cfg(feature = "cuda")]
        if let Some(memory) = &self.memory {
            return memory.check();
        }
        Ok(())
    }
}
