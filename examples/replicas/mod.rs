//! One model on several devices. Each device has a thread, a replica of the model, an optimizer and a slice of the loader. All replicas
//! take the same step, with the mean of all gradients. No collective operations are used, so no device waits for another one inside a
//! driver.
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
