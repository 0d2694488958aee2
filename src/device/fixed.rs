//! Tensors whose memory stays where it is, for steps that are recorded once.

#[cfg(feature = "cuda")]
use super::cube_fixed::FixedTensor;
use super::target::Target;
use burn::tensor::{DType, Shape, Tensor, kind::Basic};

/// What is known of one tensor of a batch that stays where it is.
pub(crate) struct Fixed {
    shape: Shape,
    dtype: DType,
    /// `None` where no recording knows addresses: there a tensor is replaced.
    #[cfg(feature = "cuda")]
    memory: Option<FixedTensor>,
}

impl Fixed {
    /// Gives a tensor memory of its own. Returns the tensor that stays.
    ///
    /// # Errors
    /// The reason in words, if the device may record steps and this crate cannot write to its memory.
    pub(crate) fn new<const D: usize, K: Basic>(tensor: Tensor<D, K>) -> Result<(Self, Tensor<D, K>), &'static str> {
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
    ///
    /// # Errors
    /// The reason in words.
    pub(crate) fn fits<const D: usize, K: Basic>(&self, tensor: &Tensor<D, K>) -> Result<(), String> {
        if (tensor.shape(), tensor.dtype()) == (self.shape.clone(), self.dtype) {
            return Ok(());
        }
        let name = |shape: &Shape, dtype: DType| format!("{:?} of {}", shape.as_slice(), dtype.name());
        let (was, is) = (name(&self.shape, self.dtype), name(&tensor.shape(), tensor.dtype()));
        Err(format!("it is {is}, and was {was} in the first batch"))
    }

    /// Whether a tensor is the one that stays. Always true where none stays.
    pub(crate) fn is<const D: usize, K: Basic>(&self, tensor: &Tensor<D, K>) -> bool {
        #[cfg(feature = "cuda")]
        if let Some(memory) = &self.memory {
            return memory.is(tensor.clone().into_dispatch());
        }
        let _ = tensor;
        true
    }

    /// Puts the values of a tensor that fits into the memory that stays. Returns the tensor to use from now on, and the
    /// reason in words if nothing was put there.
    pub(crate) fn set<const D: usize, K: Basic>(
        &self,
        tensor: Tensor<D, K>,
    ) -> (Tensor<D, K>, Result<(), &'static str>) {
        #[cfg(feature = "cuda")]
        if let Some(memory) = &self.memory {
            let done = memory.set(tensor.into_dispatch());
            return (Tensor::from_dispatch(memory.tensor()), done);
        }
        (tensor, Ok(()))
    }

    /// Asks whether the last copy went well, as far as that is known. Does not wait for the device.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn check(&self) -> Result<(), String> {
        #[cfg(feature = "cuda")]
        if let Some(memory) = &self.memory {
            return memory.check();
        }
        Ok(())
    }
}
