//! Copies of tensors from one device to another.

use super::cuda::copied;
use crate::fault::BoxError;
use burn::tensor::{Device, Tensor, kind::Autodiff};

/// Copies a tensor to another device, like Burn's [`Tensor::to_device`], and waits until the copy is complete.
///
/// ```
/// use burn::prelude::*;
///
/// let device = Device::default();
/// let tensor = burn_pinned::copy_to(Tensor::<1>::ones([3], &device), &device)?;
/// assert_eq!(tensor.into_data().try_to_vec::<f32>()?, [1.0; 3]);
/// # Ok::<(), burn_pinned::BoxError>(())
/// ```
///
/// Between GPUs, Burn copies with an NCCL collective operation: a kernel on each GPU, which runs until the kernel on the other GPU has
/// started. If something else blocks the other device in the meantime, such as the loading of a kernel, both deadlock. This function uses
/// the copy engine instead, directly if one GPU can read the other's memory, otherwise through the host. Neither GPU runs a kernel that
/// waits for the other. So it does not need NCCL, and cannot deadlock.
///
/// The result belongs to the calling thread. The tensor may come from another thread. Then it is copied even on the same GPU, because the
/// kernels of one thread may run before those of another. A tensor of the calling thread that is already on the device is returned
/// unchanged. If one of the devices is not a CUDA device, Burn copies.
///
/// # Errors
/// If autodiff tracks the tensor (copy its `inner()`), if it is quantized, if a CUDA graph is being recorded on one of the devices, or if
/// the driver refuses the copy or has no memory for it.
pub fn copy_to<const D: usize, K: Autodiff>(tensor: Tensor<D, K>, device: &Device) -> Result<Tensor<D, K>, BoxError> {
    if let Some(copied) = copied(&tensor, device)? {
        return Ok(copied);
    }
    Ok(if tensor.device() == *device { tensor } else { tensor.to_device(device) })
}
