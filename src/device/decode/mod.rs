//! Decodes JPEGs on a CUDA device: NVIDIA's engines make the pixels, one kernel makes the batch of them.

mod cuda_arena;
mod cuda_engine;
mod cuda_kernel;
mod cuda_nvjpeg;
mod cuda_queues;

pub(super) use cuda_engine::{Engine, Failure, Images};
