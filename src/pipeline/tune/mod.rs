//! Chooses the numbers of workers and of batches ahead while a training runs.

#[cfg(test)]
mod tests;
mod tuner;
mod tuning;

pub(crate) use tuner::{MOST_AHEAD, Tuner};
pub use tuning::{Auto, Count};
pub(crate) use tuning::{Settings, Tuning};
