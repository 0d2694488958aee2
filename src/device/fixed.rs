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
        if let Some(memory) = FixedTensor::new(tensor.clone().into_dispatch()) {
            let tensor = Tensor::from_dispatch(memory.tensor());
            return Ok((Self { shape, dtype, memory: Some(memory) }, tensor));
        }
        if !Target::of(device).host {
            return Err(if cfg!(feature = "cuda") {
                "it is followed by autodiff, or its device is none of CubeCL"
            } else {
                "on an accelerator this needs the feature `cuda`"
            });
        }
        let fixed = Self {
            shape,
            dtype,
            #[cfg(feature = "cuda")]
            memory: None,
        };
        Ok((fixed, tensor))
    }

    /// Whether a tensor could take the place of this one.
    pub(crate) fn fits<const D: usize, K: Basic>(&self, tensor: &Tensor<D, K>) -> Result<(), String> {
        if (tensor.shape(), tensor.dtype()) == (self.shape.clone(), self.dtype) {
            return Ok(());
        }
        let name = |shape: &Shape, dtype: DType| format!("{:?} of {}", shape.as_slice(), dtype.name());
        let (was, is) = (name(&self.shape, self.dtype), name(&tensor.shape(), tensor.dtype()));
        Err(format!("it is {is}, and was {was} in the first batch"))
    }

    /// Puts the values of a tensor that fits into the memory that stays. Returns the tensor to use from now on.
    pub(crate) fn set<const D: usize, K: Basic>(&self, tensor: Tensor<D, K>) -> Option<Tensor<D, K>> {
        #[cfg(feature = "cuda")]
        if let Some(memory) = &self.memory {
            return memory.set(tensor.into_dispatch()).then(|| Tensor::from_dispatch(memory.tensor()));
        }
        Some(tensor)
    }
}
