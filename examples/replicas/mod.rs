//! One model on several devices. Each has a thread, a replica of the model, an optimizer and a slice of the loader, and all replicas take
//! the same step with the mean of all gradients. No collective operation is used, so no device waits inside a driver for another.
//!
//! To use it, copy this folder and write `mod replicas;`. [`train`] takes any module, any loader and any step. The
//! example `data_parallel` calls it.

pub(crate) mod barrier;
pub(crate) mod checkpoint;
pub(crate) mod gradients;
pub(crate) mod mean;
mod replica;
pub(crate) mod train;

pub(crate) use train::{Epoch, Plan, train};
