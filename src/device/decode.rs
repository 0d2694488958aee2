//! Decodes JPEGs on a CUDA device: NVIDIA's engines make the pixels, kernels make the batch of them.

mod arena;
mod engine;
mod kernel;
mod nvjpeg;

pub(super) use super::flat::Failure;
pub(super) use engine::{Engine, Images, engine};
