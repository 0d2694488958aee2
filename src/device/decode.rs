//! Decodes JPEGs on a CUDA device: NVIDIA's engines decode the files, and kernels make the batch from the pixels.

mod arena;
mod engine;
mod kernel;
mod nvjpeg;

pub(super) use super::flat::Failure;
pub(super) use engine::{Engine, Images, engine};
