//! Chooses the numbers of workers and of batches ahead while a training runs.

#[cfg(test)]
mod tests;
mod tuner;
mod tuning;

#[cfg(test)]
pub(crate) use tuner::Seen;
pub(crate) use tuner::{MOST_AHEAD, Tuner};
pub use tuning::{Auto, Count};
pub(crate) use tuning::{Settings, Tuning};
