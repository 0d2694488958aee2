//! Decodes JPEGs on a CUDA device: NVIDIA's engines make the pixels, kernels make the batch of them.

mod cuda_arena;
mod cuda_engine;
mod cuda_kernel;
mod cuda_nvjpeg;

pub(super) use super::flat::Failure;
pub(super) use cuda_engine::{Engine, Images};
