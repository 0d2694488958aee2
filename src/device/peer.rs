//! Copies of tensors from one device to another.

use super::cuda::copied;
use crate::fault::BoxError;
use burn::tensor::{Device, Tensor, kind::Autodiff};

/// Copies a tensor to another device, as Burn's [`Tensor::to_device`] does, and waits until it is there.
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
/// From one GPU to another, Burn copies by a collective operation of NCCL: a kernel on each GPU, which runs until the other one has begun.
/// If something on the other device waits meanwhile, such as a kernel that is loaded, neither goes on. This copies by the copy
/// engine, directly where the machine lets one GPU read the other's memory, and else through the host. No GPU runs anything meanwhile
/// that waits for the other one. So it needs no NCCL, and cannot stand still.
///
/// The tensor is for the calling thread. It may have been made on another one, also on the same GPU: then it is copied there, since the kernels of
/// one thread may run before those of another. A tensor of the calling thread that is on the device already is returned as it is. Where one of the
/// devices is none of CUDA, Burn copies.
///
/// # Errors
/// If autodiff follows the tensor (copy its `inner()`), if it is quantized, if a CUDA graph is recorded on one of the devices, or if the
/// driver refuses the copy, or has no memory for it.
pub fn copy_to<const D: usize, K: Autodiff>(tensor: Tensor<D, K>, device: &Device) -> Result<Tensor<D, K>, BoxError> {
    if let Some(copied) = copied(&tensor, device)? {
        return Ok(copied);
    }
    Ok(if tensor.device() == *device { tensor } else { tensor.to_device(device) })
}
